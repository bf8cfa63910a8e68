"""Shorthand for configuration tests: load a text, or the errors and warnings it gives."""

from __future__ import annotations

from conduit.config import Config, ConfigError, Diagnostic, load_text

MINIMAL = """\
schema_version: 1
listeners: {listeners: [{address: "127.0.0.1:15353", protocol: udp}]}
pools: [{name: default, backends: [{address: "127.0.0.1:5300"}]}]
"""
#: As MINIMAL, without a pool block.
NO_POOLS = """\
schema_version: 1
listeners: {listeners: [{address: "127.0.0.1:15353", protocol: udp}]}
"""


def load(text: str) -> Config:
    return load_text(text, "test.yaml").config


def extend(text: str) -> Config:
    """Load MINIMAL with more top-level blocks."""
    return load(MINIMAL + text)


def failure(text: str) -> ConfigError:
    try:
        load_text(text, "test.yaml")
    except ConfigError as error:
        return error
    raise AssertionError("the configuration loaded")


def errors(text: str, stage: str = "validation") -> list[str]:
    """Return the error lines of a text that must fail at `stage`."""
    error = failure(text)
    assert error.stage == stage, [str(d) for d in error.diagnostics]
    return [str(d) for d in error.diagnostics]


def extend_errors(text: str, stage: str = "validation") -> list[str]:
    return errors(MINIMAL + text, stage)


def warnings(text: str) -> list[Diagnostic]:
    return list(load_text(text, "test.yaml").warnings)


def extend_warnings(text: str) -> list[str]:
    return [w.message for w in warnings(MINIMAL + text)]


def has(lines: list[str], *fragments: str) -> bool:
    """True when one of the lines holds every fragment."""
    return any(all(fragment in line for fragment in fragments) for line in lines)
