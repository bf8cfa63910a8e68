"""`conduit-rhai --txn`: what a policy script did to a made-up transaction."""

from __future__ import annotations

import pytest

from conduit.cli.rhai import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    status = main(["--txn", *arguments])
    captured = capsys.readouterr()
    return status, captured.out.splitlines(), captured.err


def test_effects_of_the_request_hook(capsys: pytest.CaptureFixture[str]) -> None:
    script = (
        'if txn.question().qname == "a.test." && txn.client_ip() == "192.0.2.7" '
        '&& txn.question().qtype == RecordType::MX { txn.set_pool("p"); txn.set_tag("x", true); '
        'metrics.inc("n", 2); log.warn("hi"); print("printed"); txn.drop_query_now(); }'
    )
    status, lines, _ = run(
        capsys, "--qname", "a.test", "--qtype", "MX", "--client", "192.0.2.7", "-e", script
    )
    assert status == 0
    assert lines == [
        "printed",
        "pool (none) -> p",
        "flag 'x' (none) -> true",
        "logs at warn: hi",
        "counts 2 in metric n",
        "drops the query",
    ]


def test_rcode_means_the_response_hook(capsys: pytest.CaptureFixture[str]) -> None:
    script = "if txn.response_rcode() == Rcode::SERVFAIL { txn.request_retry_now(); }"
    assert run(capsys, "--rcode", "SERVFAIL", "-e", script)[1] == ["retries at once"]
    assert run(capsys, "--rcode", "NOERROR", "-e", script)[1] == ["changes nothing"]


def test_a_failed_script_has_no_effects(capsys: pytest.CaptureFixture[str]) -> None:
    status, lines, error = run(capsys, "-e", 'txn.set_pool("p"); txn.response()')
    assert (status, lines) == (1, [])
    assert "not available in request phase" in error
    assert "-e:1:24" in error


@pytest.mark.parametrize("arguments", [("--client", "x"), ("--qtype", "NOPE"), ("--rcode", "q")])
def test_what_does_not_exist_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--txn", *arguments, "-e", "1"])
    assert caught.value.code == 2
    assert "error:" in capsys.readouterr().err
