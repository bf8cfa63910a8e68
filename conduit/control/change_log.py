"""The log lines about an installed change (chapter 10 section 12)."""

from __future__ import annotations

from conduit.observe.logging import get_log
from conduit.snapshot import RuntimeSnapshot

_log = get_log("conduit_core")


def log_applied(previous: RuntimeSnapshot, new: RuntimeSnapshot, source: str) -> None:
    """Log what changed and what needs a restart, in the order of chapter 10 section 12."""
    _log.info("config applied", generation=new.generation, source=source)
    before, after = previous.config, new.config
    if len(before.pools) != len(after.pools):
        _log.info("pools: count changed", prev_pools=len(before.pools), new_pools=len(after.pools))
    old_pools = {pool.name: pool for pool in before.pools}
    for pool in after.pools:
        old = old_pools.get(pool.name)
        if old is None:
            _log.info("pool: added", pool=pool.name)
        elif old.backends != pool.backends:
            _log.info("pool: backends changed", pool=pool.name)
    if len(before.events.sinks) != len(after.events.sinks):
        _log.info(
            "observation: sink count changed",
            prev_sinks=len(before.events.sinks),
            new_sinks=len(after.events.sinks),
        )
    if len(before.rules.rules) != len(after.rules.rules):
        _log.info(
            "rules: count changed",
            prev_rules=len(before.rules.rules),
            new_rules=len(after.rules.rules),
        )
    if before.listeners != after.listeners:
        _log.info("listeners: pending (restart required) — snapshot updated, sockets not rebound")
    if before.forward != after.forward:
        _log.info(
            "forward egress: pending (restart required) — snapshot updated, sockets not rebound"
        )
    old_caches = {cache.name: cache for cache in before.caches}
    for cache in after.caches:
        known = old_caches.get(cache.name)
        if (
            known is not None
            and known.memory_or_default().shard_count != cache.memory_or_default().shard_count
        ):
            _log.info(
                "cache memory.shard_count: pending (restart required) — "
                "snapshot updated, shard layout unchanged",
                cache=cache.name,
            )
