"""Acceptance examples of chapter 50 that concern loading: metrics, events, tracing, logging."""

from __future__ import annotations

import pytest

from tests.config.support import extend, extend_errors, extend_warnings, has


def metrics_errors(keys: str) -> list[str]:
    return extend_errors(f"metrics: {{enabled: true, {keys}}}\n")


def metrics_warnings(keys: str) -> list[str]:
    return extend_warnings(f"metrics: {{{keys}}}\n")


def test_ch50_example_01_enabled_alone() -> None:
    assert metrics_warnings("enabled: true") == []


def test_ch50_example_02_empty_category_set() -> None:
    assert has(metrics_errors("base: none"), "category set is empty")
    extend("metrics: {enabled: true, base: none, categories: {include: [meta]}}\n")


def test_ch50_example_03_include_and_exclude() -> None:
    found = metrics_warnings(
        "enabled: true, base: minimal, categories: {include: [timing], exclude: [timing]}"
    )
    assert has(found, "'timing'", "exclude wins")
    assert has(metrics_warnings("enabled: true, categories: {exclude: [failures]}"), "'failures'")


def test_ch50_example_04_collect_without_emit() -> None:
    lines = metrics_errors("collection: {timing: {collect: false}}")
    assert has(lines, "metrics.collection.timing", "collect is false while emit is true")
    extend("metrics: {enabled: true, collection: {timing: {collect: false, emit: false}}}\n")
    assert has(metrics_errors("event_export: {collect: false}"), "metrics.event_export")
    assert has(metrics_errors("user_metrics: [{name: a, collect: false}]"), "user_metrics[0]")


def test_ch50_example_05_profile_off() -> None:
    found = metrics_warnings("enabled: true, profile: off, base: standard")
    assert len(found) == 2
    assert has(found, "deprecated")
    assert has(found, "'off'")


def test_ch50_example_06_base_wins_over_profile() -> None:
    assert metrics_warnings("enabled: true, profile: minimal, base: standard") == [
        "metrics.profile is deprecated; use metrics.base"
    ]


def test_ch50_example_07_ignored_keys_are_named_in_order() -> None:
    assert metrics_warnings("event_export: {}, base: minimal") == [
        "metrics is not enabled; ignored: base, event_export"
    ]
    assert metrics_warnings("base: nonsense, prometheus: {listen_address: nonsense}") == [
        "metrics is not enabled; ignored: base"
    ]


def test_ch50_example_08_to_10_granularity() -> None:
    config = extend(
        "metrics: {enabled: true, granularity: {default: balanced, timing: [backend, pool], "
        "acl: [], responses: {rcode: coarse}, overrides: {volume: [qtype]}}}\n"
    )
    assert config.metrics is not None
    granularity = config.metrics.granularity
    assert granularity is not None
    assert granularity.default == "balanced"
    assert granularity.families["timing"].dimensions == ("backend", "pool")
    assert granularity.families["acl"].dimensions == ()
    assert granularity.families["responses"].dimensions is None
    assert granularity.families["responses"].rcode == "coarse"
    assert granularity.families["volume"].dimensions == ("qtype",)


@pytest.mark.parametrize(
    ("keys", "fragment"),
    [
        ("granularity: {volume: {rcode: coarse}}", "metrics.granularity.volume.rcode"),
        ("granularity: {responses: {rcode: fine}}", "'fine' must be coarse or iana"),
        ("granularity: {default: medium}", "metrics.granularity.default 'medium'"),
        ("granularity: {everything: []}", "unknown family 'everything'"),
        ("granularity: {timing: [qname]}", "label 'qname' is not allowed"),
        ("base: most", "metrics.base 'most' must be none, minimal, or standard"),
        ("profile: some", "metrics.profile 'some' must be minimal, full, or off"),
        ("categories: {include: [x]}", "metrics.categories.include: unknown category 'x'"),
        ("categories: {exclude: [x]}", "metrics.categories.exclude: unknown category 'x'"),
        ("collection: {x: {}}", "metrics.collection: unknown category 'x'"),
        ("user_metrics: [{name: ''}]", "metrics.user_metrics[0].name must not be empty"),
        ("user_metrics: [{name: a}, {name: a}]", "user_metrics[1]: duplicate name 'a'"),
        ("user_metrics: [{name: a, export: off}]", "export 'off' must be minimal or full"),
        ("prometheus: {listen_address: 'localhost:9090'}", "metrics.prometheus.listen_address"),
        ("otel: {push_interval_ms: 999}", "metrics.otel.push_interval_ms 999 must be >= 1000"),
        ("otel: {endpoint: 'ftp://x'}", "must begin with http:// or https://"),
    ],
)
def test_ch50_example_10_and_12_rejected(keys: str, fragment: str) -> None:
    assert has(metrics_errors(keys), fragment)


@pytest.mark.parametrize(("interval", "expected"), [("1000", 1000), ("0", 15000), ("~", 15000)])
def test_ch50_example_12_push_interval(interval: str, expected: int) -> None:
    metrics = extend(
        f"metrics: {{enabled: true, otel: {{push_interval_ms: {interval}}}}}\n"
    ).metrics
    assert metrics is not None
    assert metrics.otel is not None
    assert metrics.otel.effective_push_interval_ms == expected


@pytest.mark.usefixtures("without_extras")
def test_missing_packages_are_named_with_the_install_command() -> None:
    assert has(
        metrics_errors("otel: {endpoint: 'http://127.0.0.1:4318/v1/metrics'}"),
        "pip install 'dns-conduit[otlp]'",
    )
    lines = extend_errors("caches: [{name: c, type: lmdb, lmdb: {path: /tmp, map_size: 1GB}}]\n")
    assert has(lines, "pip install 'dns-conduit[lmdb]'")


def sink_errors(keys: str) -> list[str]:
    return extend_errors(f"events: {{sinks: [{{type: dnstap, {keys}}}]}}\n")


D = "destinations: ['unix:/run/x']"


@pytest.mark.parametrize(
    ("keys", "fragment"),
    [
        (D, "events.sinks[0] requires name or export_id"),
        (f"export_id: ' ', {D}", "requires name or export_id"),
        (f"name: '', export_id: a, {D}", "events.sinks[0].name must not be empty"),
        ("name: a", "events.sinks[0].destinations must not be empty"),
        ("name: a, destinations: ['udp:x']", "must begin with unix: or tcp:"),
        (f"name: a, {D}, emit: [drop]", "emit 'drop' must be query, response, or retry"),
        (f"name: a, {D}, extra_fields: [x]", "events.sinks[0].extra_fields 'x'"),
        (f"name: a, {D}, extra_tags: [t]", "extra_tags needs tags in extra_fields"),
        (f"name: a, {D}, extra_fields: [tags], extra_tags: ['*', t]", "cannot be mixed"),
        (f"name: a, {D}, extra_fields: [tags], extra_tags: ['']", "extra_tags[0]"),
        (f"name: a, {D}, connect_retry: {{multiplier: 0.5}}", "connect_retry.multiplier"),
        (f"name: a, {D}, filters: {{sample_percent: 101}}", "sample_percent 101.0"),
        (f"name: a, {D}, filters: {{sample_percent: .nan}}", "sample_percent nan"),
        (f"name: a, {D}, filters: {{pool: '', tag_required: t}}", "filters.pool must not be empty"),
        (
            f"name: a, {D}, filters: {{sample_key: a, sample_key_from: qname}}",
            "mutually exclusive",
        ),
        (f"name: a, {D}, filters: {{sample_key_from: rule_name}}", "'rule_name' is only valid in"),
        (
            f"name: a, {D}, filters: {{selectors: [{{type: client_cidr, value: t}}]}}",
            "only valid in rules selectors",
        ),
        (
            f"name: a, {D}, filters: {{selectors: [{{type: every_nth_global, value: 2}}]}}",
            "only valid in rules selectors",
        ),
    ],
)
def test_sinks_rejected(keys: str, fragment: str) -> None:
    assert has(sink_errors(keys), "events.sinks[0]", fragment)


def test_sink_names_are_unique() -> None:
    text = "events: {sinks: [{type: dnstap, name: %s, %s}, {type: dnstap, name: %s, %s}]}\n"
    lines = extend_errors(text % ("a", D, "a", D))
    assert has(lines, "events.sinks[1].name", "duplicates sinks[0]")
    identity = D + ", export_id: i"
    assert has(
        extend_errors(text % ("a", identity, "b", identity)),
        "events.sinks[1] export_id 'i' duplicates sinks[0]",
    )


def test_events_accepted() -> None:
    config = extend(
        "events:\n  sinks:\n"
        f"    - {{type: dnstap, export_id: ' e ', {D}, filters: {{pool: ''}}}}\n"
        f"    - {{type: dnstap, name: n, {D}, connect_retry: {{multiplier: 0, initial_ms: 0}}}}\n"
    )
    first, second = config.events.sinks
    assert (first.canonical_name, first.identity) == ("e", "e")
    assert (second.canonical_name, second.identity) == ("n", "n")
    assert first.emitted == ("query", "response")
    assert second.connect_retry.resolved().multiplier == 2.0
    assert second.connect_retry.resolved().initial_ms == 1000
    assert has(extend_errors("events: {queue_depth: 0}\n"), "events.queue_depth must be >= 1")
    assert has(extend_errors("events: {drop_policy: x}\n"), "events.drop_policy 'x'")
    assert has(extend_errors("events: {sinks: [{type: kafka}]}\n"), "'kafka' must be dnstap")


def test_tracing_is_checked_only_while_enabled() -> None:
    activation = "activation: {selectors: [{type: every_nth_worker, value: 2}], sample_percent: -1}"
    extend(f"tracing: {{{activation}}}\n")
    lines = extend_errors(f"tracing: {{enabled: true, {activation}}}\n")
    assert has(lines, "tracing.activation.selectors[0]", "only valid in rules selectors")
    assert has(lines, "tracing.activation.sample_percent")
    for source in ("sink_name", "rule_name"):
        assert has(
            extend_errors(
                f"tracing: {{enabled: true, activation: {{sample_key_from: {source}}}}}\n"
            ),
            f"'{source}' is only valid",
        )


@pytest.mark.parametrize(
    ("keys", "fragment"),
    [
        ("level: WARN", "logging.level 'WARN' must be"),
        ("output: file", "logging.output 'file' must be stderr or stdout"),
        ("query_access: {acl_denied: loud}", "logging.query_access.acl_denied 'loud'"),
        ("query_access: {acl_denied_sample: {mode: x}}", "acl_denied_sample.mode 'x'"),
        ("query_access: {acl_denied_sample: {mode: per_source, rate: 101}}", ".rate 101.0"),
        ("query_access: {acl_denied_sample: {mode: every_nth}}", ".nth must be >= 1"),
        ("query_access: {acl_denied_sample: {mode: every_nth, nth: 0}}", ".nth must be >= 1"),
    ],
)
def test_logging_rejected(keys: str, fragment: str) -> None:
    assert has(extend_errors(f"logging: {{{keys}}}\n"), fragment)


def test_secrets_stay_out_of_representations() -> None:
    config = extend(
        "control: {api_keys: [s3cret]}\n"
        "metrics: {enabled: true, otel: {headers: {authorization: s3cret}}}\n"
    )
    assert config.control is not None
    assert config.control.api_keys == ("s3cret",)
    assert "s3cret" not in repr(config)
