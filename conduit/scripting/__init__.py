"""Scripting: what a Rhai policy script sees and may do (chapter 35)."""
