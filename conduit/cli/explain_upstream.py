"""The upstream side of an explained query: a virtual clock and scripted answers, no network."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from conduit.config import Config
from conduit.upstream.exchange import (
    POOL_INFLIGHT_EXCEEDED,
    SEND_ERROR,
    TABLE_FULL,
    TCP_ERROR,
    TIMEOUT,
    Exchange,
    ExchangeResult,
)
from conduit.wire import Query, parse_query, parse_rcode, rcode_name, synthesize_reply

FAILURES: Final = (TIMEOUT, SEND_ERROR, TCP_ERROR, TABLE_FULL, POOL_INFLIGHT_EXCEEDED)
_MAX_HEADER_RCODE: Final = 15
_SHOWN_NAMES: Final = 20
_OVERSHOOT_SECONDS: Final = 0.0001


class UsageError(Exception):
    """The command line asks for something that the configuration or DNS does not have."""


class VirtualClock:
    """Seconds of the monotonic clock that pass only when a timeout or `advance` says so."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        # begins now, so that scripts that ask for the time of day get the present one
        self.now = time.monotonic()

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self.now += seconds


class Outcome(NamedTuple):
    """One scripted end of an exchange: `rcode`, or `failure` when nothing useful came back."""

    rcode: int
    failure: str | None = None

    def __str__(self) -> str:
        return self.failure or rcode_name(self.rcode)


class ScriptedUpstream:
    """Ends exchanges as `--answer-from` says, per backend in order, and then with one rcode."""

    __slots__ = ("_clock", "_default", "_scripts", "_texts")

    def __init__(
        self, config: Config, answers: Sequence[str], default: str, clock: VirtualClock
    ) -> None:
        """`answers` are `POOL/BACKEND=OUTCOME` texts. Raises UsageError for a bad one."""
        self._clock = clock
        self._default = Outcome(parse_header_rcode(default))
        self._scripts: dict[tuple[str, str], deque[Outcome]] = {}
        self._texts: dict[tuple[str, str], deque[str]] = {}
        known = _backends(config)
        for text in answers:
            where, sign, outcome = text.rpartition("=")
            if not sign:
                raise UsageError(f"'{text}' is not POOL/BACKEND=OUTCOME")
            target = known.get(where)
            if target is None:
                raise UsageError(f"no backend '{where}'; {_known_names(config)}")
            self._scripts.setdefault(target, deque()).append(_parse_outcome(outcome))
            self._texts.setdefault(target, deque()).append(text)

    def perform(self, exchange: Exchange) -> tuple[ExchangeResult, Outcome, bool]:
        """Return the result of `exchange`, what it was, and whether it was scripted."""
        target = (exchange.pool.name, exchange.backend.label)
        script = self._scripts.get(target)
        scripted = bool(script)
        if script:
            outcome = script.popleft()
            self._texts[target].popleft()
        else:
            outcome = self._default
        if outcome.failure is not None:
            if outcome.failure == TIMEOUT:
                # a wait never ends early: a limit of the same length is always over then
                self._clock.now = exchange.deadline + _OVERSHOOT_SECONDS
            return ExchangeResult(None, outcome.failure), outcome, scripted
        query = parse_query(exchange.wire)
        assert isinstance(query, Query)
        return ExchangeResult(synthesize_reply(query, outcome.rcode)), outcome, scripted

    def unused(self) -> list[str]:
        """Return the scripted answers that no attempt consumed, as given."""
        return [text for texts in self._texts.values() for text in texts]


def parse_header_rcode(text: str) -> int:
    """Return the rcode of a name or `RCODEn` text; raises UsageError unless it fits a header."""
    try:
        number = parse_rcode(text)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if number > _MAX_HEADER_RCODE:
        raise UsageError(
            f"rcode '{text}' is above 15: the header, which rules read, cannot carry it"
        )
    return number


def _parse_outcome(text: str) -> Outcome:
    folded = text.strip().lower()
    if folded in FAILURES:
        return Outcome(0, folded)
    try:
        return Outcome(parse_header_rcode(text))
    except UsageError as error:
        raise UsageError(f"{error}; failures are {', '.join(FAILURES)}") from error


def _backends(config: Config) -> Mapping[str, tuple[str, str]]:
    """Map `pool/label` and `pool/address` to pool name and label; labels come first."""
    known: dict[str, tuple[str, str]] = {}
    for by_label in (True, False):
        for pool in config.pools:
            for backend in pool.backends:
                name = backend.label if by_label else backend.address
                known.setdefault(f"{pool.name}/{name}", (pool.name, backend.label))
    return known


def _known_names(config: Config) -> str:
    names = [f"{pool.name}/{backend.label}" for pool in config.pools for backend in pool.backends]
    more = len(names) - _SHOWN_NAMES
    shown = ", ".join(names[:_SHOWN_NAMES])
    return f"known are: {shown}" + (f" and {more} more" if more > 0 else "")
