"""The commands of `conduitctl` and what they share; each module has one job (chapter 60, 9)."""
