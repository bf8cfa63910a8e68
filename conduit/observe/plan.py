"""Which metric families are exported, and with which labels (chapter 50 sections 2.2 to 2.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from conduit.config import Metrics
from conduit.observe import families
from conduit.observe.families import Family

_MINIMAL: Final = frozenset({"volume", "failures", "lookup", "health", "topology", "meta"})
_STANDARD: Final = _MINIMAL | {"timing", "cache_detail", "forward_detail", "runtime", "process"}
_BASES: Final = {"none": frozenset[str](), "minimal": _MINIMAL, "standard": _STANDARD}

#: Labels that coarse granularity drops, by family.
_FINE_ONLY: Final = {
    families.QUERIES.name: frozenset({"qtype", "qclass", "ip_family"}),
    families.RESPONSES.name: frozenset({"ip_family"}),
    families.RESPONSES_TRUNCATED.name: frozenset({"ip_family"}),
    families.QUERIES_DROPPED.name: frozenset({"ip_family"}),
    families.ACL_DECISIONS.name: frozenset({"ip_family"}),
    families.FORWARD_ATTEMPTS.name: frozenset({"pool", "backend"}),
}


@dataclass(frozen=True)
class MetricPlan:
    """A resolved `metrics` block: active categories and the default granularity."""

    enabled: bool
    categories: frozenset[str]
    fine: bool

    def exports(self, family: Family) -> bool:
        """True when `family` is on the page."""
        return self.enabled and family.category in self.categories

    def labels(self, family: Family) -> tuple[str, ...]:
        """Return the labels of `family` under this plan."""
        dropped = frozenset() if self.fine else _FINE_ONLY.get(family.name, frozenset())
        return tuple(label for label in family.labels if label not in dropped)

    @property
    def coarse_rcodes(self) -> bool:
        """True when response codes are grouped."""
        return not self.fine


def resolve_plan(metrics: Metrics | None) -> MetricPlan:
    """Resolve a validated `metrics` block; absent or not enabled means nothing is exported."""
    if metrics is None or not metrics.enabled or metrics.profile == "off":
        return MetricPlan(False, frozenset(), True)
    base = metrics.base or {"minimal": "minimal"}.get(metrics.profile or "", "standard")
    categories = set(_BASES[base])
    if metrics.categories is not None:
        categories.update(metrics.categories.include or ())
        categories.difference_update(metrics.categories.exclude or ())
    default = "coarse" if base == "minimal" else "fine"
    if metrics.granularity is not None and metrics.granularity.default:
        default = metrics.granularity.default
    for name, switch in metrics.collection.items():
        if switch.collect is False or switch.emit is False:
            categories.discard(name)
    return MetricPlan(True, frozenset(categories), default == "fine")
