"""Validation of forwarding: `forward`, `pools`, backends and health checks.

Texts: chapter 20 sections 1.4 and 1.5, chapter 10 sections 6.3 to 6.5.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

from conduit.config.address import parse_socket_address, parse_source_address
from conduit.config.diagnostics import KeyPath
from conduit.config.model import Config
from conduit.config.model_traffic import Health, Pool
from conduit.config.report import Report
from conduit.wire.enums import parse_rcode, parse_record_type

MAX_SOURCES: Final = 32
_TRANSPORTS: Final = ("udp_only", "tcp_only", "prefer_udp_with_tcp_fallback")
_INITIAL_STATES: Final = ("optimistic", "require_1_good", "require_full_rise")


def validate_forward(config: Config, report: Report) -> None:
    """Check `forward`."""
    block = config.forward
    if block.source_selection not in ("", "round_robin"):
        report.error(
            ("forward", "source_selection"),
            f"forward.source_selection '{block.source_selection}' must be round_robin (slice A)",
        )
    for key, addresses, family in (
        ("sources_v4", block.sources_v4, socket.AF_INET),
        ("sources_v6", block.sources_v6, socket.AF_INET6),
    ):
        _check_sources(report, ("forward", key), "forward.", addresses, family)
    if block.transport not in _TRANSPORTS:
        report.error(
            ("forward", "upstream_transport"),
            f"forward.upstream_transport '{block.upstream_transport}' must be udp_only, tcp_only, "
            "or prefer_udp_with_tcp_fallback",
        )
    elif block.client_tcp_uses_upstream_tcp and block.transport == "udp_only":
        report.warn(
            ("forward", "client_tcp_uses_upstream_tcp"),
            "forward.client_tcp_uses_upstream_tcp does nothing under udp_only",
            "without-effect",
        )
    for zero_key, value, meaning in (
        ("timeout_ms", block.timeout_ms, "lets every forward time out at once"),
        ("outstanding_per_backend", block.outstanding_per_backend, "forwards nothing"),
    ):
        if value == 0:
            report.warn(("forward", zero_key), f"forward.{zero_key} 0 {meaning}", "zero-limit")


def validate_backend_addresses(config: Config, report: Report) -> None:
    """Check that every backend address parses; a zone must name an existing interface."""
    for pool_index, pool in enumerate(config.pools):
        for index, backend in enumerate(pool.backends):
            try:
                parse_socket_address(backend.address)
            except ValueError as error:
                report.error(
                    ("pools", pool_index, "backends", index, "address"),
                    f"pool '{pool.name}' backend '{backend.address}': invalid socket address: "
                    f"{error}",
                )


def validate_health(config: Config, report: Report) -> None:
    """Check `pools[].health`, also while it is not enabled, and the probe keys of backends."""
    for pool_index, pool in enumerate(config.pools):
        path: KeyPath = ("pools", pool_index)
        if pool.health is not None:
            _check_health(pool.health, f"pool '{pool.name}' ", (*path, "health"), report)
        for index, backend in enumerate(pool.backends):
            backend_path: KeyPath = (*path, "backends", index)
            prefix = f"pool '{pool.name}' backend '{backend.label}' "
            if backend.probe_qtype:
                message = _problem(parse_record_type, backend.probe_qtype)
                if message:
                    report.error((*backend_path, "probe_qtype"), f"{prefix}probe_qtype: {message}")
            if backend.probe_source and not _is_ip(backend.probe_source):
                report.error(
                    (*backend_path, "probe_source"),
                    f"{prefix}probe_source '{backend.probe_source}' is not a valid IPv4 or IPv6 "
                    "address",
                )


def _check_health(health: Health, prefix: str, path: KeyPath, report: Report) -> None:
    if health.interval_ms < 100:
        report.error(
            (*path, "interval_ms"),
            f"{prefix}health.interval_ms {health.interval_ms} is below the 100ms floor",
        )
    for key, value in (
        ("timeout_ms", health.timeout_ms),
        ("rise", health.rise),
        ("fall", health.fall),
        ("passive_fall", health.passive_fall),
    ):
        if value is not None and value < 1:
            report.error((*path, key), f"{prefix}health.{key} must be >= 1")
    message = _problem(parse_record_type, health.probe_qtype)
    if message:
        report.error((*path, "probe_qtype"), f"{prefix}health.probe_qtype: {message}")
    for index, name in enumerate(health.acceptable_rcodes):
        message = _problem(parse_rcode, name)
        if message:
            report.error(
                (*path, "acceptable_rcodes", index),
                f"{prefix}health.acceptable_rcodes[{index}]: {message}",
            )
    if health.initial_state not in _INITIAL_STATES:
        report.error(
            (*path, "initial_state"),
            f"{prefix}health.initial_state '{health.initial_state}' must be optimistic, "
            "require_1_good, or require_full_rise",
        )


def validate_pools(config: Config, report: Report) -> None:
    """Check names, backends, weights and source lists of `pools`."""
    names: set[str] = set()
    for index, pool in enumerate(config.pools):
        path: KeyPath = ("pools", index)
        if not pool.name:
            report.error((*path, "name"), "pool name must not be empty")
        elif pool.name in names:
            report.error((*path, "name"), f"duplicate pool name '{pool.name}'")
        names.add(pool.name)
        if not pool.backends:
            report.error((*path, "backends"), f"pool '{pool.name}' has no backends")
        if pool.max_inflight == 0:
            report.error(
                (*path, "max_inflight"), f"pool '{pool.name}' max_inflight must be >= 1 when set"
            )
        for key, addresses, family in (
            ("sources_v4", pool.sources_v4, socket.AF_INET),
            ("sources_v6", pool.sources_v6, socket.AF_INET6),
        ):
            _check_sources(report, (*path, key), f"pool '{pool.name}' ", addresses, family)
        if pool.remove:
            report.warn(
                (*path, "remove"),
                f"pool '{pool.name}': remove is a marker for overlays and is ignored in the file",
                "remove-ignored",
            )
        _check_backends(pool, path, report)
    if not config.pools:
        report.warn(("pools",), "no pools: every query ends in SERVFAIL", "no-pools")


def _check_backends(pool: Pool, path: KeyPath, report: Report) -> None:
    names: set[str] = set()
    for index, backend in enumerate(pool.backends):
        backend_path: KeyPath = (*path, "backends", index)
        if not backend.address:
            report.error(
                (*backend_path, "address"), f"pool '{pool.name}' backend address must not be empty"
            )
        if backend.weight == 0:
            report.error(
                (*backend_path, "weight"),
                f"pool '{pool.name}' backend '{backend.address}' weight must be >= 1",
            )
        if backend.name:
            if backend.name in names:
                report.error(
                    (*backend_path, "name"),
                    f"pool '{pool.name}' duplicate backend name '{backend.name}'",
                )
            names.add(backend.name)
        if backend.remove:
            report.warn(
                (*backend_path, "remove"),
                f"pool '{pool.name}' backend '{backend.label}': remove is a marker for overlays "
                "and is ignored in the file",
                "remove-ignored",
            )


def _check_sources(
    report: Report, path: KeyPath, prefix: str, addresses: tuple[str, ...], family: int
) -> None:
    """Report the first problem of a source list (chapter 10 section 6.5)."""
    key = path[-1]
    if len(addresses) > MAX_SOURCES:
        report.error(path, f"{prefix}{key} has {len(addresses)} entries; maximum is {MAX_SOURCES}")
        return
    for index, address in enumerate(addresses):
        if not address.strip():
            report.error((*path, index), f"{prefix}{key}[{index}] must not be empty")
            return
        try:
            parse_source_address(address, family)
        except ValueError as error:
            report.error((*path, index), f"{prefix}{key}[{index}] {error}")
            return


def _is_ip(text: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            parse_source_address(text, family)
        except ValueError:
            continue
        return True
    return False


def _problem(parse: Callable[[str], int], text: str) -> str | None:
    """Return why `text` is not a name that `parse` knows, or None when it is one."""
    try:
        parse(text)
    except ValueError as error:
        return str(error)
    return None
