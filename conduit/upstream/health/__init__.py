"""Backend health: active probes, passive fast-trip, latency weighting, operator controls.

State lives outside the snapshot and survives reloads (chapter 60 sections 10 to 15).
"""
