"""The metric plan and the page: presets, switches, overrides, counts that survive (chapter 50)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families

from conduit.config import load_text
from conduit.observe import families
from conduit.observe.counters import CounterRegistry, Recorder
from conduit.observe.exposition import ExpositionCollector, render
from conduit.observe.plan import MetricPlan, resolve_plan


def plan(yaml: str) -> MetricPlan:
    text = f"schema_version: 1\npools: []\nmetrics: {{enabled: true, {yaml}}}\n"
    return resolve_plan(load_text(text, "t.yaml").config.metrics)


class Page:
    """A collector with one recorder, and its rendered page as a dictionary."""

    def __init__(self, yaml: str = "") -> None:
        self.counters = CounterRegistry()
        self.recorder: Recorder = self.counters.acquire()
        self.collector = ExpositionCollector(
            self.counters, {families.SLOTS_IN_USE: lambda: {(): 3}}, plan(yaml)
        )

    @property
    def text(self) -> str:
        return render(self.collector).decode()

    def series(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        return {
            tuple(sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self.text)
            for sample in family.samples
            if sample.name == name
        }

    def value(self, name: str, **labels: str) -> float | None:
        return self.series(name).get(tuple(sorted(labels.items())))


def query(page: Page, qtype: int = 1, family: str = "v4") -> None:
    page.recorder.queries[("l", "udp", qtype, 1, family)] += 1


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("", {"listener", "protocol", "qtype", "qclass", "ip_family"}),
        ("base: standard", {"listener", "protocol", "qtype", "qclass", "ip_family"}),
        ("base: minimal", {"listener", "protocol"}),
        ("profile: minimal", {"listener", "protocol"}),
        ("profile: full", {"listener", "protocol", "qtype", "qclass", "ip_family"}),
        ("granularity: {default: balanced}", {"listener", "protocol", "qtype"}),
        (
            "base: minimal, granularity: {default: fine}",
            {"listener", "protocol", "qtype", "qclass", "ip_family"},
        ),
        ("granularity: {volume: []}", set()),
        ("granularity: {volume: [ip_family, listener]}", {"listener", "ip_family"}),
        ("granularity: {volume: {dimensions: [qtype]}}", {"qtype"}),
    ],
)
def test_labels_of_queries(yaml: str, expected: set[str]) -> None:
    assert set(plan(yaml).labels(families.QUERIES)) == expected


def test_left_out_labels_are_summed_over() -> None:
    page = Page("base: minimal")
    query(page, 1)
    query(page, 28, "v6")
    assert page.value("conduit_queries_total", listener="l", protocol="udp") == 2


def test_forward_families_at_coarse_and_balanced() -> None:
    coarse, balanced = plan("base: minimal"), plan("granularity: {default: balanced}")
    assert coarse.labels(families.FORWARD_ERRORS) == ("pool", "backend", "reason")
    assert balanced.labels(families.FORWARD_ERRORS) == ("pool", "reason")
    assert balanced.labels(families.FORWARD_ATTEMPTS) == ("pool", "outcome")
    coarse_timing = plan("base: standard, granularity: {default: coarse}")
    assert coarse_timing.labels(families.FORWARD_ATTEMPTS) == ("outcome",)
    assert coarse_timing.labels(families.FORWARD_DURATION) == ()


def test_ip_family_of_fixed_families_follows_volume() -> None:
    assert "ip_family" in plan("").labels(families.QUERIES_DROPPED)
    without = plan("granularity: {volume: [listener]}")
    assert "ip_family" not in without.labels(families.QUERIES_DROPPED)
    assert without.labels(families.QUERIES_DROPPED) == ("listener", "protocol", "reason")


@pytest.mark.parametrize(
    ("yaml", "label"),
    [
        ("", "FORMERR"),
        ("base: minimal", "OTHER"),
        ("base: minimal, granularity: {responses: {rcode: iana}}", "FORMERR"),
        ("granularity: {responses: {rcode: coarse}}", "OTHER"),
    ],
)
def test_rcode_detail(yaml: str, label: str) -> None:
    page = Page(yaml)
    page.recorder.responses[("l", "udp", "FORMERR", "v4", "forward")] += 1
    ((labels, value),) = page.series("conduit_responses_total").items()
    assert dict(labels)["rcode"] == label
    assert value == 1


def test_categories_and_switches() -> None:
    assert not plan("base: minimal").exports(families.SLOTS_IN_USE)
    assert plan("base: minimal, categories: {include: [runtime]}").exports(families.SLOTS_IN_USE)
    assert not plan("categories: {exclude: [volume]}").exports(families.QUERIES)
    hidden = plan("collection: {volume: {collect: true, emit: false}}")
    assert hidden.records(families.QUERIES)
    assert not hidden.exports(families.QUERIES)
    off = plan("collection: {timing: {collect: false, emit: false}}")
    assert not off.timing
    assert not resolve_plan(None).enabled
    assert not plan("profile: 'off'").enabled


def test_families_without_rows_do_not_appear() -> None:
    page = Page()
    assert "conduit_queries_total" not in page.text
    assert page.value("conduit_slots_in_use") == 3


def test_histograms_are_cumulative_with_bounds_spelled_as_in_the_chapter() -> None:
    page = Page()
    for value in (0.00005, 0.0001, 0.02, 3.0, 99.0):
        page.recorder.phase_duration.observe(("lookup",), value)
    buckets = {
        dict(labels)["le"]: value
        for labels, value in page.series("conduit_phase_duration_seconds_bucket").items()
    }
    assert buckets == {
        "0.0001": 2, "0.001": 2, "0.01": 2, "0.05": 3, "0.1": 3, "0.5": 3, "1": 3, "5": 4,
        "10": 4, "+Inf": 5,
    }  # fmt: skip
    assert page.value("conduit_phase_duration_seconds_count", phase="lookup") == 5
    total = page.value("conduit_phase_duration_seconds_sum", phase="lookup")
    assert total == pytest.approx(102.02015)
    assert "_created" not in page.text


def test_threads_are_added_up_and_ended_ones_are_kept() -> None:
    page = Page("base: minimal")
    other = page.counters.acquire()
    other.queries[("l", "udp", 1, 1, "v4")] += 5
    page.counters.release(other)
    again = page.counters.acquire()
    assert again is other
    again.queries[("l", "udp", 1, 1, "v4")] += 1
    assert page.value("conduit_queries_total", listener="l", protocol="udp") == 6


def test_same_labels_keep_their_counts_over_plan_changes() -> None:
    page = Page("base: minimal")
    query(page)
    page.collector.change_plan(plan("base: minimal, categories: {include: [runtime]}"))
    query(page)
    assert page.value("conduit_queries_total", listener="l", protocol="udp") == 2


def test_a_changed_label_list_starts_from_zero_and_returns_with_its_count() -> None:
    page = Page("base: minimal")
    query(page)
    query(page)
    page.collector.change_plan(plan("granularity: {volume: [protocol]}"))
    assert page.series("conduit_queries_total") == {}
    query(page)
    assert page.value("conduit_queries_total", protocol="udp") == 1
    page.collector.change_plan(plan("base: minimal"))
    query(page)
    assert page.value("conduit_queries_total", listener="l", protocol="udp") == 3


def test_a_category_switched_off_and_on_goes_on_with_its_earlier_values() -> None:
    page = Page("base: minimal")
    query(page)
    page.collector.change_plan(plan("base: minimal, categories: {exclude: [volume]}"))
    query(page)
    page.collector.change_plan(plan("base: minimal"))
    query(page)
    # what came while it was off is not counted
    assert page.value("conduit_queries_total", listener="l", protocol="udp") == 2


def user(page: Page, name: str, labels: Mapping[str, str] | None = None) -> None:
    page.recorder.user[(name, tuple(sorted((labels or {}).items())))] += 1


def test_user_metrics_keep_their_names_and_labels() -> None:
    page = Page("user_metrics: [{name: hits, help: 'Hits of the list'}]")
    user(page, "hits", {"list": "ads"})
    user(page, "block-ed")
    user(page, "seen_total")
    # read as text: the parser gives every counter a `_total`
    lines = page.text.splitlines()
    assert 'conduit_user_hits{list="ads"} 1' in lines
    assert "# HELP conduit_user_hits Hits of the list\n# TYPE conduit_user_hits counter\n" in (
        page.text
    )
    assert "# HELP conduit_user_block_ed Rhai user-defined metric\n" in page.text
    assert "# TYPE conduit_user_seen_total counter\n" in page.text
    assert "conduit_user_seen_total 1" in lines


@pytest.mark.parametrize(
    ("yaml", "visible"),
    [
        ("", True),
        ("granularity: {default: balanced}", False),
        ("base: minimal", False),
        ("base: minimal, user_metrics: [{name: hits, export: minimal}]", True),
        ("base: minimal, user_metrics: [{name: hits, export: full}]", False),
        ("user_metrics: [{name: hits, collect: true, emit: false}]", False),
        ("base: minimal, user_metrics: [{name: hits, collect: true}]", True),
    ],
)
def test_when_user_metrics_are_on_the_page(yaml: str, visible: bool) -> None:
    page = Page(yaml)
    user(page, "hits")
    assert ("conduit_user_hits 1" in page.text.splitlines()) is visible


def test_ch50_example_13_lines_as_the_chapter_spells_them() -> None:
    page = Page("base: minimal")
    page.recorder.queries[("127.0.0.1:15353", "udp", 1, 1, "v4")] += 1
    page.recorder.responses[("127.0.0.1:15353", "udp", "NOERROR", "v4", "forward")] += 1
    lines = page.text.splitlines()
    assert 'conduit_queries_total{listener="127.0.0.1:15353",protocol="udp"} 1' in lines
    assert (
        'conduit_responses_total{answer_source="forward",listener="127.0.0.1:15353",'
        'protocol="udp",rcode="NOERROR"} 1'
    ) in lines


def test_numbers_have_no_exponent() -> None:
    page = Page()
    page.recorder.phase_duration.observe(("lookup",), 0.0000123)
    page.recorder.queries[("l", "udp", 1, 1, "v4")] += 10**15
    assert "e-" not in page.text
    assert 'conduit_phase_duration_seconds_sum{phase="lookup"} 0.0000123' in page.text
    assert " 1000000000000000\n" in page.text
