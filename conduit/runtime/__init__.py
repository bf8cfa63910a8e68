"""Runtime: listeners, transaction slots, worker pools, drain (chapter 20 sections 2-4)."""
