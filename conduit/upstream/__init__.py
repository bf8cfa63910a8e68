"""Upstream: pools and backends, selection, egress sources, UDP and TCP exchange (chapter 20)."""
