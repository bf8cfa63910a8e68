"""Benchmarks of the forwarder against other forwarders, as ratios within one run."""
