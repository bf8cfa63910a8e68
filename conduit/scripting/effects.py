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
    """What one run wants to change; scripts reach it only through `txn` and `metrics`.

    A field that was not written is not in the instance: most runs write one or two.
    """

    pool: Any = UNSET
    retry_pool: Any = UNSET
    tags: dict[str, object] | None = None
    rcode: Any = UNSET
    source_v4: Any = UNSET
    source_v6: Any = UNSET
    retry_source_v4: Any = UNSET
    retry_source_v6: Any = UNSET
    soft_drop: Any = UNSET
    soft_retry: Any = UNSET
    hard_drop = False
    hard_retry = False
    cache_eligible: Any = UNSET
    lookup_profile: str | None = None
    increments: list[Increment] | None = None

    def write_tag(self, key: str, value: object) -> None:
        """Note a tag: True or False for a boolean one, text for a string one, or `CLEARED`."""
        if self.tags is None:
            self.tags = {}
        self.tags[key] = value

    def count(self, name: str, amount: int, labels: tuple[tuple[str, str], ...]) -> None:
        """Queue an increment; `labels` are sorted by key."""
        if self.increments is None:
            self.increments = []
        self.increments.append((name, amount, labels))

    def apply(self, txn: Transaction) -> int:
        """Apply everything to `txn`; returns the step result of the action.

        Increments are recorded only while the metric is collected.
        """
        if not self.__dict__:
            return GO_ON
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
        if self.lookup_profile is not None:
            txn.set_lookup_profile(self.lookup_profile)
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
