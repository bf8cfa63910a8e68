"""The buffered writes of one script run: applied when it has succeeded, dropped when it failed.

The order of application and the rule that the last call wins are those of chapter 35 section 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conduit.policy.actions import DROP_NOW, GO_ON, RETRY_NOW

if TYPE_CHECKING:
    from conduit.transaction import Transaction


#: A tag that the script removed.
CLEARED: Final = object()

#: An increment: metric name, amount, label pairs sorted by key.
Increment = tuple[str, int, tuple[tuple[str, str], ...]]


#: Fields that are copied as they are, with the name they have in the transaction.
_PLAIN: Final = {
    "pool": "selected_pool",
    "retry_pool": "retry_pool",
    "rcode": "rcode",
    "source_v4": "source_v4",
    "source_v6": "source_v6",
    "retry_source_v4": "retry_source_v4",
    "retry_source_v6": "retry_source_v6",
    "soft_drop": "soft_drop",
    "soft_retry": "soft_retry",
    "cache_eligible": "cache_eligible",
}


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Effects:
    """What one run wants to change; scripts reach it only through `txn` and `metrics`.

    A field that was not written is not in the instance: most runs write one or two.
    """

    # what a script may write; None clears
    pool: str | None
    retry_pool: str | None
    rcode: int
    source_v4: str
    source_v6: str
    retry_source_v4: str | None
    retry_source_v6: str | None
    soft_drop: bool
    soft_retry: bool
    cache_eligible: bool
    lookup_profile: str
    # what is read here as well
    tags: dict[str, object] | None = None
    hard_drop = False
    hard_retry = False
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
        # fields are independent of each other: the order of their application cannot be seen
        for name, value in self.__dict__.items():
            attribute = _PLAIN.get(name)
            if attribute is not None:
                setattr(txn, attribute, value)
            elif name == "tags":
                self._apply_tags(txn, value)
            elif name == "increments":
                self._count(txn, value)
            elif name == "lookup_profile":
                txn.set_lookup_profile(value)
        if self.hard_drop:
            return DROP_NOW
        return RETRY_NOW if self.hard_retry else GO_ON

    @staticmethod
    def _apply_tags(txn: Transaction, tags: dict[str, object]) -> None:
        keys = sorted(tags, key=_octets) if len(tags) > 1 else tags
        for key in keys:
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
