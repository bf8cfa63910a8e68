"""The metric plan: which families are exported, and with which labels (chapter 50, 2.2 to 2.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from conduit.config import Metrics
from conduit.config.validate_metrics import BASES, GRANULARITY_FAMILIES
from conduit.observe import families
from conduit.observe.families import Family

COARSE: Final = "coarse"
BALANCED: Final = "balanced"
FINE: Final = "fine"

_PROFILE_BASES: Final = {"minimal": "minimal", "full": "standard"}

#: Labels of each granularity family under the presets that are not fine.
_PRESETS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "volume": {COARSE: ("listener", "protocol"), BALANCED: ("listener", "protocol", "qtype")},
    "responses": dict.fromkeys(
        (COARSE, BALANCED), ("listener", "protocol", "rcode", "answer_source")
    ),
    "timing": {COARSE: (), BALANCED: ("pool",)},
    "forward_failures": {
        COARSE: ("pool", "backend", "reason"),
        BALANCED: ("pool", "reason"),
    },
    "acl": dict.fromkeys((COARSE, BALANCED), ("tier", "action", "listener")),
    "cache_lookup": dict.fromkeys((COARSE, BALANCED), ("cache", "profile", "result")),
}

#: The granularity family that gives a metric its labels.
_FAMILY_OF: Final = {
    families.QUERIES.name: "volume",
    families.RESPONSES.name: "responses",
    families.ACL_DECISIONS.name: "acl",
    families.FORWARD_DURATION.name: "timing",
    families.FORWARD_ATTEMPTS.name: "timing",
    families.FORWARD_ERRORS.name: "forward_failures",
    families.CACHE_LOOKUPS.name: "cache_lookup",
}
#: Labels that a metric has whatever its granularity family says.
_ALWAYS: Final = {families.FORWARD_ATTEMPTS.name: ("outcome",)}
#: Metrics with fixed labels, but for `ip_family`, which follows the family `volume`.
_FOLLOW_VOLUME: Final = frozenset(
    {families.RESPONSES_TRUNCATED.name, families.QUERIES_DROPPED.name}
)


@dataclass(frozen=True)
class MetricPlan:
    """A resolved `metrics` block.

    `recorded` and `emitted` are categories; `labels` maps a granularity family to its labels.
    """

    enabled: bool = False
    recorded: frozenset[str] = frozenset()
    emitted: frozenset[str] = frozenset()
    granularity: str = FINE
    family_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coarse_rcodes: bool = False
    #: Help texts, and names switched on or off, of metrics that scripts define.
    user_help: Mapping[str, str] = field(default_factory=dict)
    user_recorded: Mapping[str, bool] = field(default_factory=dict)
    user_emitted: Mapping[str, bool] = field(default_factory=dict)

    def records(self, family: Family) -> bool:
        """True when `family` is counted."""
        return self.enabled and family.category in self.recorded

    def exports(self, family: Family) -> bool:
        """True when `family` is on the page."""
        return self.enabled and family.category in self.emitted

    @property
    def timing(self) -> bool:
        """True when durations are measured on the query path."""
        return self.enabled and "timing" in self.recorded

    @property
    def standard_tier(self) -> bool:
        """True when unlisted metrics of scripts are on (chapter 50 section 2.11)."""
        return self.enabled and self.granularity == FINE

    def labels(self, family: Family) -> tuple[str, ...]:
        """Return the labels of `family` under this plan, in canonical order."""
        if family.name in _FOLLOW_VOLUME:
            dropped = () if "ip_family" in self.family_labels.get("volume", ()) else ("ip_family",)
            return tuple(label for label in family.labels if label not in dropped)
        group = _FAMILY_OF.get(family.name)
        if group is None:
            return family.labels
        kept = (*self.family_labels.get(group, ()), *_ALWAYS.get(family.name, ()))
        return tuple(label for label in family.labels if label in kept)


def resolve_plan(metrics: Metrics | None) -> MetricPlan:
    """Resolve a validated `metrics` block; absent or not enabled means nothing is exported."""
    if metrics is None or not metrics.enabled or metrics.profile == "off":
        return MetricPlan()
    base = metrics.base or _PROFILE_BASES.get(metrics.profile or "", "standard")
    categories = set(BASES[base])
    if metrics.categories is not None:
        categories.update(metrics.categories.include or ())
        categories.difference_update(metrics.categories.exclude or ())
    recorded, emitted = set(categories), set(categories)
    for name, switch in metrics.collection.items():
        if switch.collect is False:
            recorded.discard(name)
        if switch.collect is False or switch.emit is False:
            emitted.discard(name)
    # not a category: conduit_events_* have a switch of their own
    events = metrics.event_export
    if events is None or events.collect:
        recorded.add("event_export")
        if events is None or events.emit:
            emitted.add("event_export")
    default = COARSE if base == "minimal" else FINE
    overrides = metrics.granularity.families if metrics.granularity is not None else {}
    if metrics.granularity is not None and metrics.granularity.default:
        default = metrics.granularity.default
    labels: dict[str, tuple[str, ...]] = {}
    for group, allowed in GRANULARITY_FAMILIES.items():
        chosen = _PRESETS[group].get(default, allowed)
        override = overrides.get(group)
        if override is not None and override.dimensions is not None:
            chosen = override.dimensions
        labels[group] = tuple(label for label in allowed if label in chosen)
    responses = overrides.get("responses")
    rcode = responses.rcode if responses is not None else None
    plan = MetricPlan(
        enabled=True,
        recorded=frozenset(recorded),
        emitted=frozenset(emitted),
        granularity=default,
        family_labels=labels,
        coarse_rcodes=(rcode == COARSE) if rcode else default != FINE,
    )
    return _with_user_metrics(plan, metrics)


def _with_user_metrics(plan: MetricPlan, metrics: Metrics) -> MetricPlan:
    help_texts: dict[str, str] = {}
    recorded: dict[str, bool] = {}
    emitted: dict[str, bool] = {}
    for entry in metrics.user_metrics:
        if entry.help:
            help_texts[entry.name] = entry.help
        if entry.collect is not None or entry.emit is not None:
            recorded[entry.name] = entry.collect is not False
            emitted[entry.name] = entry.emit is not False and entry.collect is not False
        else:
            on = entry.export == "minimal" or plan.standard_tier
            recorded[entry.name] = emitted[entry.name] = on
    return MetricPlan(
        **{
            **plan.__dict__,
            "user_help": help_texts,
            "user_recorded": recorded,
            "user_emitted": emitted,
        }
    )
