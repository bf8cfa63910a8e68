"""Command lines of `conduitctl`: exit code 2, help, options before and behind, start-up time."""

from __future__ import annotations

import resource
import subprocess
import sys

import click
import pytest

from conduit.cli.conduitctl import main
from tests.cli.test_conduitctl_server import Ctl, ctl, server

__all__ = ["ctl", "server"]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "nonsense",
        "pool",
        "pool nonsense",
        "pool get",
        "pool list extra",
        "pool list --nonsense",
        # no abbreviations of option names
        "--endp http://x pool list",
        "backend set-weight --pool P --backend a",
        "backend set-weight --pool P --backend a --weight x",
        "backend set-weight --pool P --backend a --weight -1",
        "backend set-weight --pool P --backend a --weight 4294967296",
        "backend remove --pool P",
        "apply --merge --replace --file x",
        "apply --replace --clear",
        "apply --clear --file x",
        "validate",
        "trace",
        "acl check",
        "acl",
        "health set",
        "data-source upsert --name a --type csv",
        "data-source-limits set --max-tables 1.5",
        "events get-sink",
        "events set-filters",
        "events set-filters --name e --sample-percent x",
        "metrics patch --enabled yes",
        "cache set-max-entries --name c",
        "cache set-max-entries --name c --max-entries 18446744073709551616",
        "cache set-policy-hot --name c --rotate-rrset-on-serve",
        "pool list --output xml",
        "diff",
        "top --interval 0",
    ],
)
def test_usage_errors_exit_with_2(ctl: Ctl, line: str) -> None:
    result = ctl(*line.split())
    assert result.exit_code == 2, result.output
    assert "Usage:" in result.stderr
    assert result.stdout == ""
    assert ctl.server.requests == []


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("apply", "--file is required unless --clear is set"),
        ("apply --merge", "--file is required unless --clear is set"),
        ("orchestrator set-limits", "at least one of --max-attempts"),
        ("rhai set-limits", "at least one of --max-operations"),
        ("metrics patch", "nothing to patch"),
        ("cache set-lmdb-hot --name c", "at least one of --when-full"),
        ("cache set-policy-hot --name c", "at least one of --rotate-rrset-on-serve"),
    ],
)
def test_requests_that_say_nothing_exit_with_1(ctl: Ctl, line: str, text: str) -> None:
    result = ctl(*line.split())
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {text}")
    assert ctl.server.requests == []


def commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command and group as the words of a command line."""
    found = [path]
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = (*path, name)
        found += commands(command, inner) if isinstance(command, click.Group) else [inner]
    return found


ALL = commands(main)


def test_the_commands_of_chapter_60_are_there() -> None:
    lines = {" ".join(path) for path in ALL}
    assert lines >= {
        *("apply", "export", "validate", "reload", "trace", "acl check"),
        *("health show", "health freeze", "health resume", "health set"),
        *("pool list", "pool get", "backend set-weight", "backend remove"),
        *("orchestrator get", "orchestrator set-limits"),
        *("data-source list", "data-source get", "data-source upsert", "data-source remove"),
        *("data-source-limits get", "data-source-limits set"),
        *("events get", "events get-sink", "events set-filters", "events set-emit"),
        *("rhai get", "rhai set-limits", "metrics get", "metrics patch"),
        *("cache list", "cache get", "cache set-max-entries", "cache set-lmdb-hot"),
        *("cache set-policy-hot", "diff", "top", "completion"),
    }


@pytest.mark.parametrize("path", ALL, ids=" ".join)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_on_every_level(ctl: Ctl, path: tuple[str, ...], flag: str) -> None:
    result = ctl(*path, flag)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("Usage: ")


@pytest.mark.parametrize(
    "line",
    [
        "--endpoint {} pool list",
        "pool --endpoint {} list",
        "pool list --endpoint {}",
        "pool list --endpoint={}",
        # the one behind wins
        "--endpoint http://127.0.0.1:1 pool list --endpoint {}",
    ],
)
def test_global_options_stand_anywhere(ctl: Ctl, line: str) -> None:
    endpoint = f"http://127.0.0.1:{ctl.server.port}"
    env = {"CONDUIT_CONTROL": "http://127.0.0.1:1"}
    result = ctl(*line.format(endpoint).split(), env=env)
    assert (result.exit_code, result.output) == (0, "")


def test_options_of_one_call_do_not_reach_the_next(ctl: Ctl) -> None:
    assert ctl("pool", "list", "--api-key", "k").exit_code == 0
    assert ctl("pool", "list").exit_code == 0
    assert "authorization" not in ctl.server.metadata


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(ctl: Ctl, shell: str) -> None:
    result = ctl("completion", shell)
    assert result.exit_code == 0
    assert "_CONDUITCTL_COMPLETE" in result.stdout
    words = {"COMP_WORDS": "conduitctl po", "COMP_CWORD": "1"}
    shown = ctl(env={"_CONDUITCTL_COMPLETE": "bash_complete", **words})
    assert "pool" in shown.stdout


def test_starts_fast_and_without_grpc() -> None:
    program = (
        "import sys\nfrom conduit.cli.conduitctl import main\n"
        "try:\n    main(['pool', '--help'])\nexcept SystemExit: pass\n"
        "slow = {'grpc', 'google.protobuf', 'yaml', 'jsonschema', 'dns'} & set(sys.modules)\n"
        "sys.exit(str(slow) if slow else 0)"
    )
    taken = []
    for _ in range(3):
        # processor time: what else the machine does is not ours
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(taken) < 0.4
