"""What a host registers, hands in and gets back (chapter 36 section 20)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from conduit.rhai import (
    ANY,
    Array,
    Blob,
    Char,
    Engine,
    EvalError,
    Limits,
    Map,
    Module,
    ParseError,
    Position,
    RunState,
    Scope,
    StopScript,
    TerminateScript,
    call_position,
    to_python,
    to_script,
)
from tests.rhai.running import engine_for


class Query:
    """A host object with state."""

    def __init__(self, name: str = "a.test") -> None:
        self.name = name
        self.tags: dict[str, Any] = {}
        self.labels = Array(["x"])
        self.places: list[Position | None] = []

    def tag(self, key: str, value: Any) -> bool:
        self.tags[key] = value
        return True

    def rename(self, name: str) -> None:
        if not name:
            raise ValueError("empty name")
        self.name = name

    def mark(self, st: RunState) -> None:
        self.places.append(st.call_position())

    def fail(self, reason: str) -> None:
        raise KeyError(reason)

    def refuse(self) -> None:
        raise EvalError("ErrorArithmetic", "no such sum")

    def parts(self) -> Iterator[str]:
        yield from self.name.split(".")

    def broken_parts(self) -> Iterator[str]:
        yield "first"
        raise RuntimeError("no more")


class Silent(Exception):
    """An exception that cannot say what happened."""

    def __str__(self) -> str:
        raise ValueError


@pytest.fixture
def engine() -> Engine:
    made = engine_for(Limits(max_operations=100_000, timeout_ms=2000))
    made.register_type(
        Query,
        "Query",
        getters={"name": lambda q: q.name, "labels": lambda q: q.labels, "bad": lambda q: q.nope},
        setters={"name": Query.rename},
        index_get={str: lambda q, key: q.tags.get(key), int: lambda q, i: q.name.split(".")[i]},
        index_set={(str, ANY): lambda q, key, value: q.tags.__setitem__(key, value)},
        methods={"refuse": Query.refuse},
        to_string=lambda q: f"query {q.name}",
        equals=lambda a, b: a.name == b.name,
        iterate=Query.parts,
    )
    made.register_fn("tag", Query.tag, Query, str, ANY)
    made.register_fn("fail", Query.fail, Query, str)
    made.register_fn("mark", lambda st, q: q.mark(st), Query, context=True)
    return made


def test_getters_setters_and_methods(engine: Engine) -> None:
    query = Query()
    script = 'q.name = q.name + "!"; q.tag("k", 1); q["other"] = 2.5; q["k"] + q["other"]'
    assert engine.eval(script, Scope(q=query)) == 3.5
    assert query.name == "a.test!"
    assert query.tags == {"k": 1, "other": 2.5}


def test_a_copy_is_the_same_object(engine: Engine) -> None:
    query = Query()
    engine.eval('let r = q; fn f(x) { x.name = "f" } f(r);', Scope(q=query))
    assert query.name == "f"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("`${q}`", "query a.test"),
        ("[q].to_string()", "[query a.test]"),
        ("type_of(q)", "Query"),
        ("q == q", True),
        ("q != q", False),
        ("q == 1", False),
        ("[q] == [q]", True),
        ("q[1]", "test"),
        ('let n = ""; for p in q { n += p + "/"; } n', "a/test/"),
        ("q.unknown", None),
        ("let x = (); x?.name", None),
    ],
)
def test_host_values(engine: Engine, script: str, expected: Any) -> None:
    assert engine.eval(script, Scope(q=Query())) == expected


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("q.tag(1)", "Function not found: tag (Query, i64) (line 1, position 3)"),
        ("q < q", "Function not found: < (Query, Query) (line 1, position 3)"),
        ("let v = 1.5; q[v]", "Indexer unavailable: Query [f64] (line 1, position 15)"),
        (
            "q[1] = 2",
            "Indexer unavailable: Query [i64] = i64 (line 1, position 2)",
        ),
        ('q.fail("why")', "Runtime error: 'why' (line 1, position 3)"),
        ('q.name = ""', "Runtime error: empty name (line 1, position 3)"),
        (
            "q.bad",
            "Runtime error: 'Query' object has no attribute 'nope' (line 1, position 3)",
        ),
        ("q.refuse()", "no such sum (line 1, position 3)"),
    ],
)
def test_host_errors_are_errors_of_the_script(engine: Engine, script: str, message: str) -> None:
    with pytest.raises(EvalError) as caught:
        engine.eval(script, Scope(q=Query()))
    assert str(caught.value) == message


def test_whatever_a_host_raises_comes_out_clean(engine: Engine) -> None:
    def give(error: BaseException) -> Any:
        def function() -> None:
            raise error

        return function

    for error in (
        Silent(),
        RecursionError("deep"),
        MemoryError(),
        StopIteration(1),
        OSError(2, "gone"),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"),
        AssertionError(),
    ):
        engine.register_fn("give", give(error))
        with pytest.raises(EvalError) as caught:
            engine.eval("fn f() { give() } f()")
        assert caught.value.position is not None
        with pytest.raises(EvalError):
            engine.call_fn(engine.compile("fn f() { give() }"), None, "f")


def test_broken_hooks_come_out_clean(engine: Engine) -> None:
    def broken(*_: Any) -> None:
        raise OSError("full")

    class Odd:
        pass

    engine.on_print = broken
    engine.on_debug = broken
    engine.register_type(Odd, "Odd", to_string=broken, iterate=Query.broken_parts)  # type: ignore[arg-type]
    for script in ("print(1)", "debug(1)", "`${o}`", "for x in o {}", "[o].to_string()"):
        with pytest.raises(EvalError):
            engine.eval(script, Scope(o=Odd()))


def test_a_caught_host_error_is_a_text(engine: Engine) -> None:
    script = 'let r = ""; try { q.fail("why") } catch (e) { r = e; } r'
    assert engine.eval(script, Scope(q=Query())) == "'why'"


def test_position_of_the_call(engine: Engine) -> None:
    query = Query()
    engine.eval(
        "q.mark();\nfn f(x) {\n  x.mark()\n}\nf(q); [q].for_each(|| this.mark());", Scope(q=query)
    )
    assert query.places == [Position(1, 3), Position(3, 5), Position(5, 28)]
    assert call_position() is None


def test_changes_go_through_the_setter_or_nowhere(engine: Engine) -> None:
    query = Query()
    assert engine.eval('q.labels.push("y"); q.labels', Scope(q=query)) == ["x"]
    assert query.labels == ["x"]
    engine.host.setters[(Query, "labels")] = lambda q, new: setattr(q, "labels", new)
    assert engine.eval('q.labels.push("y"); q.labels', Scope(q=query)) == ["x", "y"]


def test_host_containers_are_copied_before_a_change(engine: Engine) -> None:
    items = Array([1, Array([2])])
    scope = Scope(a=items)
    assert engine.eval("a.push(3); a[1].push(4); a", scope) == [1, [2, 4], 3]
    assert items == [1, [2]]
    assert scope.get("a") == [1, [2, 4], 3]
    script = engine.compile("fn f(a) { a.push(1); a }")
    assert engine.call_fn(script, None, "f", items) == [1, [2], 1]
    assert items == [1, [2]]


def test_scope_is_seen_and_changed(engine: Engine) -> None:
    scope = Scope(x=1).push_constant("C", 5)
    script = engine.compile("x += C; let y = 9; x")
    assert engine.run(script, scope) == 6
    assert engine.run(script, scope) == 11
    assert scope.get("x") == 11
    assert "y" not in scope
    engine.run(script, scope, keep_variables=True)
    assert scope.get("y") == 9
    with pytest.raises(EvalError, match="Cannot modify constant C"):
        engine.eval("C = 1", scope)


def test_limits_of_one_run(engine: Engine) -> None:
    script = engine.compile("let n = 0; while n < 1000 { n += 1; } n")
    assert engine.run(script) == 1000
    with pytest.raises(EvalError) as caught:
        engine.run(script, limits=Limits(max_operations=100))
    assert caught.value.kind == "ErrorTooManyOperations"


def test_stop_signals(engine: Engine) -> None:
    def stop(value: int) -> None:
        raise StopScript(value)

    def end() -> None:
        raise TerminateScript("shutting down")

    engine.register_fn("stop", stop, int)
    engine.register_fn("end", end)
    assert engine.eval("try { [1].map(|x| stop(7)) } catch { 8 }") == 7
    with pytest.raises(EvalError) as caught:
        engine.eval("try { end() } catch {}")
    assert caught.value.kind == "ErrorTerminated"
    assert str(caught.value) == "Script terminated: shutting down"


def test_modules_and_constants(engine: Engine) -> None:
    module = Module({"ONE": 1})
    module.register_fn("double", lambda n: n * 2, int)
    engine.register_module("host", module)
    engine.register_constant("LIMIT", 30)
    assert engine.eval("fn f() { host::double(host::ONE) + LIMIT } f()") == 32
    with pytest.raises(ParseError):
        engine.eval("host::ONE = 2")
    for script, message in (
        ("host::TWO", "Variable not found: host::TWO"),
        ("host::double(1.5)", r"Function not found: host::double \(f64\)"),
        ("LIMIT = 1", "Cannot modify constant LIMIT"),
    ):
        with pytest.raises(EvalError, match=message):
            engine.eval(script)


def test_progress_ends_a_run(engine: Engine) -> None:
    counts: list[int] = []

    def progress(count: int) -> str | None:
        counts.append(count)
        return "enough" if len(counts) > 3 else None

    engine.on_progress = progress
    with pytest.raises(EvalError) as caught:
        engine.eval("loop {}")
    assert caught.value.kind == "ErrorTerminated"
    assert counts == sorted(counts)


def test_one_script_in_many_threads(engine: Engine) -> None:
    script = engine.compile("let n = 0; for i in 0..200 { n += i * k; q.tag(`t${i}`, n); } n")
    failures: list[object] = []

    def work(k: int) -> None:
        for _ in range(5):
            result = engine.run(script, Scope(k=k, q=Query()))
            if result != 19900 * k:
                failures.append(result)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_conversion_both_ways() -> None:
    plain = {"a": [1, 2.5, "x", None, True, {"b": b"\x01"}], "c": []}
    value = to_script(plain)
    assert type(value) is Map
    assert type(value["a"][5]["b"]) is Blob
    assert to_python(value) == plain
    assert to_python(Char("c")) == "c"
    assert value["a"].nested == 2
    with pytest.raises(OverflowError):
        to_script([2**63])
    with pytest.raises(TypeError):
        to_script({1: 2})


def test_functions_by_type_of_receiver(engine: Engine) -> None:
    engine.register_fn("kind", lambda _: "int", int)
    engine.register_fn("kind", lambda _: "text", str)
    engine.register_fn("kind", lambda _: "any", ANY)
    engine.register_fn("kind", lambda _, n: f"query {n}", Query, int)
    script = 'kind(1) + kind("x") + kind(1.5) + q.kind(3)'
    assert engine.eval(script, Scope(q=Query())) == "inttextanyquery 3"
