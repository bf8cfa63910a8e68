"""Lookup: profiles of providers, and the forward provider (chapter 20 section 10)."""
