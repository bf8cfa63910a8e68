"""Command lines: the daemon, the linter and the control client."""
