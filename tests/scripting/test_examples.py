"""The acceptance examples of chapter 35, by number, inside the pipeline."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from conduit.config import ConfigError, load_text
from conduit.observe.plan import resolve_plan
from conduit.policy.compile import CompileError
from tests.scripting.support import OK, POOLS, configuration, errors, run, tags
from tests.support.scripted import MINIMAL, ScriptedRun, answer, make_query, snapshot_of, timeout


def error_texts(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The `error` field of every line about a failed script."""
    fields = [getattr(record, "conduit_fields", {}) for record in caplog.records]
    return [str(found["error"]) for found in fields if "error" in found]


SET_T = {"type": "set_tag", "value": "t=1"}


def test_example_1_zero_operations_are_rejected() -> None:
    with pytest.raises(ConfigError, match=r"rhai\.max_operations must be >= 1"):
        load_text(MINIMAL + POOLS + "rhai: {max_operations: 0}\n", "t.yaml")


def test_example_2_timeout_0_means_50(tmp_path: Path) -> None:
    slow = "let n = 0; while n < 100000000 { n += 1; }"
    rest = "rhai: {hook_timeout_ms: 0, max_operations: 1000000000}\n"
    done = run(tmp_path, slow, rest=rest)
    assert errors(done) == {"timeout": 1}


def test_example_3_a_script_needs_a_path(tmp_path: Path) -> None:
    with pytest.raises((CompileError, ConfigError), match=r"(?s)r1.*rhai action requires script"):
        run(tmp_path, {"type": "rhai", "value": ""})


def test_example_4_relative_to_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "a.rhai").write_text('throw "x";')
    done = run(tmp_path, {"type": "rhai", "value": "p/a.rhai"})
    assert list(done.recorder.script_errors) == [("eval", str(tmp_path / "p" / "a.rhai"), "")]


def test_example_5_literal_table_names_are_checked_even_in_comments(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="unknown data source 'nope' in lookup"):
        run(tmp_path, '// lookup("nope", x)')


UNKNOWN = 'let t = "nope"; let v = lookup(t, "k"); if v == "" { txn.set_tag("m", true); }'


def test_example_6_unknown_table_at_run_time(tmp_path: Path) -> None:
    done = run(tmp_path, UNKNOWN)
    assert tags(done) == {"m": True}
    key = ("lookup_unknown_table", str(tmp_path / "s0.rhai"), "nope")
    assert dict(done.recorder.script_errors) == {key: 1}


def test_example_7_unknown_tables_are_logged_at_milestones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    snapshot = snapshot_of(configuration(tmp_path, [UNKNOWN]), str(tmp_path))
    with caplog.at_level(logging.WARNING):
        for _ in range(12):
            ScriptedRun(snapshot, [OK]).go()
    lines = [r for r in caplog.records if "unknown data source in table_lookup" in r.getMessage()]
    assert len(lines) == 2


def test_example_8_odd_table_names_share_a_label(tmp_path: Path) -> None:
    done = run(tmp_path, 'let t = "a b"; lookup(t, "k");')
    ((_, _, label),) = done.recorder.script_errors
    assert label == "other"


def test_example_9_phase_guard_discards_everything(tmp_path: Path) -> None:
    done = run(tmp_path, 'txn.set_pool("x"); txn.response();')
    assert errors(done) == {"phase_guard": 1}
    assert done.attempts == ["default/b1"]
    assert done.rcode == "NOERROR"


def test_example_10_a_caught_error_is_none(tmp_path: Path) -> None:
    done = run(tmp_path, 'try { txn.response(); } catch { } txn.set_pool("b");')
    assert errors(done) == {}
    assert done.attempts == ["b/192.0.2.2:53"]


def test_example_11_phase_before_address(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    script = 'txn.set_source_v4("bogus");'
    assert errors(run(tmp_path, script, hook="response")) == {"phase_guard": 1}
    with caplog.at_level(logging.WARNING):
        assert errors(run(tmp_path, script)) == {"eval": 1}
    assert any("is not a valid IPv4 address" in text for text in error_texts(caplog))


def test_example_12_endless_loops_end(tmp_path: Path) -> None:
    done = run(tmp_path, "loop {}", SET_T, rest="rhai: {max_operations: 100}\n")
    assert errors(done) == {"operation_limit": 1}
    assert tags(done) == {"t": "1"}


def test_example_13_a_failed_run_changes_nothing(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        {"type": "set_pool", "value": "b"},
        'txn.set_pool("default"); throw "no";',
        SET_T,
    )
    assert done.attempts == ["b/192.0.2.2:53"]
    assert tags(done) == {"t": "1"}


def test_example_14_a_later_built_in_wins(tmp_path: Path) -> None:
    done = run(tmp_path, 'txn.set_pool("b")', {"type": "set_pool", "value": "default"})
    assert done.attempts == ["default/b1"]


def test_example_15_reads_show_the_start_of_the_run(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        {"type": "set_pool", "value": "default"},
        'txn.set_pool("b"); txn.set_tag("p", txn.selected_pool());',
    )
    assert done.attempts == ["b/192.0.2.2:53"]
    assert tags(done) == {"p": "default"}


def test_example_16_the_last_word_on_dropping(tmp_path: Path) -> None:
    assert run(tmp_path, "txn.drop_query(); txn.clear_drop();").rcode == "NOERROR"
    assert run(tmp_path, "txn.clear_drop(); txn.drop_query();", answers=[]).reply is None


@pytest.mark.parametrize(
    "script",
    [
        'txn.drop_query_now(); txn.set_tag("z", true);',
        "fn f(t) { for i in 0..3 { t.drop_query_now(); } } try { f(txn); } catch {} "
        'txn.set_tag("z", true);',
    ],
    ids=["plain", "nested"],
)
def test_example_17_a_hard_drop_ends_script_and_rule(tmp_path: Path, script: str) -> None:
    done = run(tmp_path, 'txn.set_tag("before", true);' + script, SET_T, answers=[])
    assert done.reply is None
    assert tags(done) == {"before": True}
    assert errors(done) == {}


def test_example_18_retry_on_the_request_hook_does_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, 'txn.request_retry_now(); txn.set_tag("k", true);')
    assert tags(done) == {"k": True}
    assert len(done.attempts) == 1


def test_example_19_soft_drop_wins_over_hard_retry(tmp_path: Path) -> None:
    drop = {"type": "drop"}
    now = "txn.request_retry_now();"
    assert run(tmp_path, drop, now, hook="response").reply is None
    done = run(
        tmp_path, drop, "txn.clear_drop();" + now, hook="response", answers=[OK, OK], pools=TWO
    )
    # the same rule asks again after the second answer, which exhausts the attempts
    assert len(done.attempts) == 2


TWO = (
    "pools: [{name: default, backends: [{address: '192.0.2.1:53'}, {address: '192.0.2.3:53'}]}]\n"
    "orchestrator: {max_attempts: 2}\n"
)


def test_example_20_fail_over_to_another_pool(tmp_path: Path) -> None:
    script = (
        "if txn.response_rcode() == Rcode::SERVFAIL && txn.get_attempt_count() < 2 "
        '{ txn.set_retry_pool("b"); txn.request_retry(); }'
    )
    done = run(tmp_path, script, hook="response", answers=[answer("SERVFAIL"), OK])
    assert done.attempts == ["default/b1", "b/192.0.2.2:53"]
    assert done.txn.selected_pool == "b"
    assert done.rcode == "NOERROR"


def test_example_21_rcode_values(tmp_path: Path) -> None:
    script = """
        let rc = txn.response_rcode();
        txn.set_tag("eq", rc == Rcode::SERVFAIL);
        txn.set_tag("text", rc == "SERVFAIL");
        txn.set_tag("name", rc.name());
        txn.set_tag("number", rc.number());
    """
    done = run(tmp_path, script, hook="response", answers=[answer("SERVFAIL")])
    assert tags(done) == {"eq": True, "text": False, "name": "SERVFAIL", "number": "2"}
    done = run(tmp_path, 'txn.set_tag("unit", txn.response_rcode() == ());')
    assert tags(done) == {"unit": True}


def test_example_22_enums(tmp_path: Path) -> None:
    script = """
        txn.set_tag("alias", Rcode::BADSIG == Rcode::RCODE16);
        txn.set_tag("text", `${RecordType::from_number(999)}`);
        txn.set_tag("ne", RecordType::A != RecordType::AAAA);
        txn.set_tag("kinds", RecordType::A == QueryClass::IN);
        txn.set_tag("of", type_of(RecordType::A));
        txn.set_tag("any", RecordType::ANY.name() + RecordType::TYPE255.name());
        try { RecordType::from_number(70000) } catch (e) { txn.set_tag("e1", e) }
        try { DnsOpcode::from_number(16) } catch (e) { txn.set_tag("e2", e) }
    """
    assert tags(run(tmp_path, script)) == {
        "alias": True,
        "text": "TYPE999",
        "ne": True,
        "kinds": False,
        "of": "RecordType",
        "any": "ANYANY",
        "e1": "RecordType number out of range: 70000",
        "e2": "DnsOpcode number out of range: 16",
    }


def test_example_23_no_edns_no_options(tmp_path: Path) -> None:
    done = run(tmp_path, 'txn.set_tag("none", txn.question().edns_options == ());')
    assert tags(done) == {"none": True}
    assert errors(run(tmp_path, "for o in txn.question().edns_options {}")) == {"eval": 1}


def test_example_24_sampling_wants_floats(tmp_path: Path) -> None:
    assert errors(run(tmp_path, "txn.sample_percent(100)")) == {"eval": 1}
    done = run(tmp_path, 'txn.set_tag("r", txn.sample_percent(100.0))')
    assert tags(done) == {"r": True, "sampled": True}
    assert tags(run(tmp_path, 'txn.set_tag("r", txn.sample_percent(0.0))')) == {"r": False}


def test_example_25_cadence(tmp_path: Path) -> None:
    script = (
        'txn.set_tag("four", txn.every_nth_worker(4)); '
        'txn.set_tag("three", txn.every_nth_worker(3));'
    )
    assert tags(run(tmp_path, script, transaction_id=8)) == {"four": True, "three": False}
    assert errors(run(tmp_path, "txn.every_nth_worker(0)")) == {"eval": 1}


def test_example_26_clock_of_the_epoch(tmp_path: Path) -> None:
    script = 'txn.set_tag("t", `${txn.now_unix()} ${txn.utc_hour()} ${txn.utc_weekday()}`);'

    def at_epoch(txn: object) -> None:
        txn._received = 0.0  # type: ignore[attr-defined]

    assert tags(run(tmp_path, script, setup=at_epoch)) == {"t": "0 0 4"}


def test_example_27_the_client(tmp_path: Path) -> None:
    script = (
        'txn.set_tag("t", `${txn.client_addr()} ${txn.client_ip()} ${txn.client_port()} '
        "${txn.client_protocol()}`);"
    )

    def client(txn: object) -> None:
        txn.client_address, txn.client_port = "2001:db8::7", 4000  # type: ignore[attr-defined]

    done = run(tmp_path, script, setup=client, protocol="tcp")
    assert tags(done) == {"t": "[2001:db8::7]:4000 2001:db8::7 4000 tcp"}


def test_example_28_tags_show_their_last_write(tmp_path: Path) -> None:
    done = run(tmp_path, 'txn.set_tag("f", false); txn.set_tag("a", txn.has_tag("f"));')
    assert tags(done) == {"f": False, "a": False}
    script = (
        'txn.set_tag("a", txn.has_tag("f")); txn.clear_tag("f"); '
        'txn.set_tag("b", txn.has_tag("f"));'
    )
    assert tags(run(tmp_path, {"type": "set_tag", "value": "f"}, script)) == {"a": True, "b": False}


def tables(folder: Path, **files: str) -> str:
    entries = []
    for name, text in files.items():
        kind, _, body = text.partition(":")
        (folder / name).write_text(body)
        entries.append(f"{{name: {name}, type: {kind}, path: {name}}}")
    return f"data_sources: [{', '.join(entries)}]\n"


def test_examples_29_30_csv(tmp_path: Path) -> None:
    rest = tables(tmp_path, t="csv:qname,value\nA.example.,block\n", u="csv:x,1\nx,2\n")
    script = (
        'txn.set_tag("r", `${lookup("t", "A.example.")}|${lookup("t", "a.example.")}|'
        '${lookup.lookup("u", "x")}|`);'
    )
    assert tags(run(tmp_path, script, rest=rest)) == {"r": "block||2|"}


def test_example_31_cidr(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rest = tables(tmp_path, v="cidr:10.0.0.0/8 wide\n10.1.0.0/16 narrow\n192.0.2.5\n")
    script = (
        'let r = ""; for a in ["10.1.9.9", "10.9.9.9", "192.0.2.5", "192.0.2.6", "abc"] '
        '{ r += lookup_ip("v", a) + "|"; } txn.set_tag("r", r);'
    )
    with caplog.at_level(logging.WARNING):
        assert tags(run(tmp_path, script, rest=rest)) == {"r": "narrow|wide|1|||"}
    assert "lookup_ip: invalid IP address argument" in caplog.text


def counted(done: ScriptedRun) -> dict[object, int]:
    return dict(done.recorder.user)


def test_example_33_a_dropped_query_still_counts(tmp_path: Path) -> None:
    script = 'metrics.inc("hits", 1); txn.drop_query();'
    done = run(tmp_path, script, answers=[])
    assert done.reply is None
    assert counted(done) == {("hits", ()): 1}
    snapshot = snapshot_of(
        configuration(tmp_path, [script]).replace("pools:", "pools:"), str(tmp_path)
    )
    assert snapshot.warnings == ()
    minimal = load_text(
        (MINIMAL + configuration(tmp_path, [script])).replace(
            "metrics: {enabled: true}", "metrics: {enabled: true, base: minimal}"
        ),
        str(tmp_path / "t.yaml"),
    )
    from conduit.snapshot import compile_snapshot

    compiled = compile_snapshot(minimal.config, 1, minimal.base_dir)
    (warning,) = compiled.warnings
    assert "s0.rhai:1" in warning
    assert "'hits'" in warning
    assert not resolve_plan(minimal.config.metrics).standard_tier


def test_example_34_label_keys_must_agree(tmp_path: Path) -> None:
    def load(*scripts: str) -> None:
        snapshot_of(configuration(tmp_path, scripts), str(tmp_path))

    with pytest.raises(CompileError, match="conflicting label keys across scripts"):
        load('metrics.inc_labels("h", 1, #{ a: "1" })', 'metrics.inc_labels("h", 1, #{ b: "1" })')
    with pytest.raises(CompileError, match="high-cardinality label key is not allowed"):
        load('metrics.inc_labels("h", 1, #{ zone: "1" })')


def test_example_35_only_literal_metric_names(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert errors(run(tmp_path, 'let n = "dyn"; metrics.inc(n, 1);')) == {"eval": 1}
    assert any("metric not registered at script load" in text for text in error_texts(caplog))
    done = run(tmp_path, 'metrics.inc("neg", -5)')
    assert errors(done) == {}
    assert counted(done) == {("neg", ()): 0}


def test_example_36_listed_metrics_must_exist(tmp_path: Path) -> None:
    yaml = (MINIMAL + configuration(tmp_path, ["let x = 1;"])).replace(
        "metrics: {enabled: true}", "metrics: {enabled: true, user_metrics: [{name: ghost}]}"
    )
    loaded = load_text(yaml, str(tmp_path / "t.yaml"))
    from conduit.snapshot import compile_snapshot

    with pytest.raises(CompileError, match="unknown user metric 'ghost'"):
        compile_snapshot(loaded.config, 1, loaded.base_dir)


def test_example_37_log_lines_are_thinned_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    snapshot = snapshot_of(configuration(tmp_path, ['log.info("m")']), str(tmp_path))
    with caplog.at_level(logging.INFO):
        for _ in range(250):
            ScriptedRun(snapshot, [OK]).go()
        lines = [r for r in caplog.records if "rhai script log" in r.getMessage()]
        assert len(lines) == 3
        again = snapshot_of(configuration(tmp_path, ['log.info("m")']), str(tmp_path))
        ScriptedRun(again, [OK]).go()
    assert sum("rhai script log" in r.getMessage() for r in caplog.records) == 4


def test_example_38_unknown_pool(tmp_path: Path) -> None:
    script = """
        let p = runtime.routing().pool("nope");
        txn.set_tag("r", `${p.configured()} ${p.configured_count()} ${p.eligible_count()}`);
        txn.set_tag("unit", p.min_latency_ewma_ms() == ());
        let d = runtime.routing().pool("default");
        txn.set_tag("d", `${d.configured()} ${d.configured_count()} ${d.fail_open_active()}`);
    """
    assert tags(run(tmp_path, script)) == {
        "r": "false 0 0",
        "unit": True,
        "d": "true 1 false",
    }


def test_example_39_health_switched_off(tmp_path: Path) -> None:
    script = """
        let b = runtime.routing().backend("default", "b1");
        txn.set_tag("r", `${b.applied()} ${b.observed()} ${b.eligible()} ${b.frozen()}`);
    """
    assert tags(run(tmp_path, script)) == {"r": "up unknown true false"}


def test_example_40_functions_see_only_their_arguments(tmp_path: Path) -> None:
    done = run(tmp_path, 'fn f(t) { t.set_pool("b"); } f(txn);')
    assert done.attempts == ["b/192.0.2.2:53"]
    done = run(tmp_path, 'fn g() { txn.set_pool("b"); } g();')
    assert errors(done) == {"eval": 1}
    assert done.attempts == ["default/b1"]


def test_a_broken_script_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        run(tmp_path, "let a = 1;\n\tlet b = (2;\n")
    error = caught.value
    assert error.line == 2
    assert str(tmp_path / "s0.rhai") in str(error)
    assert error.pointer.split("\n")[0] == "\tlet b = (2;"
    assert error.pointer.split("\n")[1].startswith("\t")


def test_a_missing_script_says_so(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="failed to read script: No such file"):
        run(tmp_path, {"type": "rhai", "value": "none.rhai"})


def test_older_names_still_work(tmp_path: Path) -> None:
    rest = tables(tmp_path, t="csv:k,v\n")
    script = (
        'if table_lookup("t", "k") == "v" { txn.set_tag("q", question_qname(txn)); } '
        'log_info("x"); log_warn("y"); txn.metric_inc("old"); '
    )
    done = run(tmp_path, script, rest=rest)
    assert errors(done) == {}
    assert tags(done) == {"q": "www.example.test."}
    assert counted(done) == {("old", ()): 1}


def test_scripts_choose_profiles_and_cache_use(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        'txn.set_lookup_profile("other"); txn.set_cache_lookup_eligible(false);',
        rest="lookup: {profiles: {default: {providers: [{type: forward}]}, "
        "other: {providers: [{type: forward}]}}}\n",
    )
    assert done.txn.lookup_profile == "other"
    assert not done.txn.cache_eligible


def test_response_of_a_timeout(tmp_path: Path) -> None:
    script = (
        'txn.set_tag("r", `${txn.response_rcode()} ${txn.response_answer_count()} '
        "${txn.answer_source()}|${txn.response()?.truncated}`);"
    )
    done = run(tmp_path, script, hook="response", answers=[timeout])
    assert tags(done) == {"r": "SERVFAIL -1 |"}


def test_the_question_with_edns(tmp_path: Path) -> None:
    script = """
        let q = txn.question();
        txn.set_tag("r", `${q.qname} ${q.qtype} ${q.qclass} ${q.opcode} ${q.id}`);
    """
    done = run(tmp_path, script, query=make_query("a.test.", "AAAA", edns=0, message_id=77))
    assert tags(done) == {"r": "a.test. AAAA IN QUERY 77"}


def test_set_rcode_by_name_and_value(tmp_path: Path) -> None:
    for value, expected in (
        ("Rcode::REFUSED", "REFUSED"),
        ('" refused "', "REFUSED"),
        ('"RCODE5"', "REFUSED"),
        ('"nonsense"', "SERVFAIL"),
    ):
        done = run(tmp_path, f"txn.set_rcode({value});", hook="response", answers=[timeout])
        assert done.rcode == expected


def test_effects_are_function_style_too(tmp_path: Path) -> None:
    done = run(tmp_path, 'set_pool(txn, "b"); clear_retry_pool(txn);')
    assert done.attempts == ["b/192.0.2.2:53"]


def test_properties_without_parentheses_are_errors(tmp_path: Path) -> None:
    assert errors(run(tmp_path, "txn.client_ip")) == {"eval": 1}
    assert errors(run(tmp_path, "log.info(5)")) == {"eval": 1}
    assert errors(run(tmp_path, "txn.set_pool(1)")) == {"eval": 1}


@pytest.mark.parametrize(
    "script",
    [
        "txn.__class__",
        "txn.effects",
        "txn._txn",
        "txn.__init__()",
        "runtime._txn",
        "lookup.run",
        "metrics.run.txn",
        "txn.apply()",
        "txn.effects()",
    ],
)
def test_no_python_attribute_is_in_reach(tmp_path: Path, script: str) -> None:
    assert errors(run(tmp_path, f'{script}; txn.set_tag("out", true);')) == {"eval": 1}


def test_exit_applies_what_was_done(tmp_path: Path) -> None:
    done = run(tmp_path, 'txn.set_pool("b"); exit(); txn.set_pool("default");')
    assert done.attempts == ["b/192.0.2.2:53"]
    assert errors(done) == {}


def test_sleep_ends_with_the_time_limit(tmp_path: Path) -> None:
    assert errors(run(tmp_path, "sleep(10);")) == {"timeout": 1}


def test_the_runtime_view_is_taken_once_a_hook(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        'txn.set_tag("a", runtime.config_generation());',
        'txn.set_tag("b", runtime.config_generation() == txn.config_generation());',
    )
    assert tags(done) == {"a": "1", "b": True}
