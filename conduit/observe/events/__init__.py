"""Event export: one dnstap frame per query, response and retry, sent to collectors over Frame
Streams without ever delaying a query (chapter 50 section 5)."""
