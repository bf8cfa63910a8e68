"""The buffered writes of one script run: applied when it has succeeded, dropped when it failed.

The order of application and the rule that the last call wins are those of chapter 35 section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conduit.policy.actions import DROP_NOW, GO_ON, RETRY_NOW

if TYPE_CHECKING:
    from conduit.transaction import Transaction


class _Unset:
    """The type of `UNSET`: nothing was written; None means that a field was cleared."""

    __slots__ = ()


UNSET: Final = _Unset()
#: A tag that the script removed.
CLEARED: Final = _Unset()

#: An increment: metric name, amount, label pairs sorted by key.
Increment = tuple[str, int, tuple[tuple[str, str], ...]]


class Effects:
    """What one run wants to change; scripts reach it only through `txn` and `metrics`."""

    __slots__ = (
        "cache_eligible",
        "hard_drop",
        "hard_retry",
        "increments",
        "pool",
        "rcode",
        "retry_pool",
        "retry_source_v4",
        "retry_source_v6",
        "soft_drop",
        "soft_retry",
        "source_v4",
        "source_v6",
        "tags",
    )

    def __init__(self) -> None:
        self.pool: Any = UNSET
        self.retry_pool: Any = UNSET
        self.tags: dict[str, object] | None = None
        self.rcode: Any = UNSET
        self.source_v4: Any = UNSET
        self.source_v6: Any = UNSET
        self.retry_source_v4: Any = UNSET
        self.retry_source_v6: Any = UNSET
        self.soft_drop: Any = UNSET
        self.soft_retry: Any = UNSET
        self.hard_drop = False
        self.hard_retry = False
        self.cache_eligible: Any = UNSET
        self.increments: list[Increment] | None = None

    def write_tag(self, key: str, value: object) -> None:
        """Note a tag: True or False for a boolean one, text for a string one, or `CLEARED`."""
        if self.tags is None:
            self.tags = {}
        self.tags[key] = value

    def apply(self, txn: Transaction) -> int:
        """Apply everything to `txn`; returns the step result of the action.

        Increments are recorded only while the metric is collected.
        """
        if self.pool is not UNSET:
            txn.selected_pool = self.pool
        if self.retry_pool is not UNSET:
            txn.retry_pool = self.retry_pool
        if self.tags is not None:
            self._apply_tags(txn, self.tags)
        if self.rcode is not UNSET:
            txn.rcode = self.rcode
        for attribute in ("source_v4", "source_v6", "retry_source_v4", "retry_source_v6"):
            value = getattr(self, attribute)
            if value is not UNSET:
                setattr(txn, attribute, value)
        if self.soft_drop is not UNSET:
            txn.soft_drop = self.soft_drop
        if self.cache_eligible is not UNSET:
            txn.cache_eligible = self.cache_eligible
        if self.increments is not None:
            self._count(txn, self.increments)
        if self.soft_retry is not UNSET:
            txn.soft_retry = self.soft_retry
        if self.hard_drop:
            return DROP_NOW
        return RETRY_NOW if self.hard_retry else GO_ON

    @staticmethod
    def _apply_tags(txn: Transaction, tags: dict[str, object]) -> None:
        for key in sorted(tags, key=lambda text: text.encode("utf-8")):
            value = tags[key]
            # one value a key: writing one kind replaces the other
            txn.clear_tag(key)
            if isinstance(value, bool):
                txn.set_flag(key, value)
            elif isinstance(value, str):
                txn.set_string(key, value)

    @staticmethod
    def _count(txn: Transaction, increments: list[Increment]) -> None:
        recorder = txn.recorder
        if recorder is None:
            return
        plan = txn.snapshot.metric_plan
        for name, amount, labels in increments:
            if plan.user_recorded.get(name, plan.standard_tier):
                recorder.user[(name, labels)] += amount
