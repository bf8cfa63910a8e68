"""Validation of the blocks that shape the process: listeners, dataplane, orchestrator, control.

Texts: chapter 20 sections 1.1 to 1.3, chapter 10 section 7.
"""

from __future__ import annotations

from typing import Final

from conduit.config.address import parse_socket_address
from conduit.config.model import Config
from conduit.config.report import Report

_RUNTIMES: Final = ("", "sync", "split_io", "tokio")
_ROUTE_FAILURE_POLICIES: Final = ("", "no_answer", "response_rules")


def validate_listeners(config: Config, report: Report) -> None:
    """Check `listeners`; an address that does not parse fails at the bind, so it is a warning."""
    block = config.listeners
    root = "listeners"
    if block.threads < 1:
        report.error((root, "threads"), "listeners.threads must be >= 1")
    names: set[str] = set()
    for index, entry in enumerate(block.listeners):
        path = (root, root, index)
        if entry.threads == 0:
            report.error((*path, "threads"), f"listener '{entry.address}' threads must be >= 1")
        if not entry.address:
            report.error((*path, "address"), "listener address must not be empty")
        else:
            try:
                parse_socket_address(entry.address)
            except ValueError as error:
                report.warn(
                    (*path, "address"),
                    f"listener '{entry.address}' cannot be bound: {error}",
                    "listener-address",
                )
        if entry.name:
            if entry.name in names:
                report.error((*path, "name"), f"duplicate listener name '{entry.name}'")
            names.add(entry.name)
        protocol = entry.protocol.lower()
        threads = entry.resolved_threads(block)
        if protocol == "udp" and threads > 1 and not entry.resolved_reuse_port(block):
            report.error(
                (*path, "threads") if entry.threads is not None else path,
                f"listener '{entry.ingress_name}' threads is {threads} but reuse_port is false; "
                "set reuse_port: true or threads: 1",
            )
        if protocol not in ("udp", "tcp"):
            report.warn(
                (*path, "protocol"),
                f"listener '{entry.address}' protocol '{entry.protocol}' is served as UDP",
                "listener-protocol",
            )
    if not block.listeners:
        report.warn((root,), "no listeners: no DNS is served", "no-listeners")


def validate_dataplane(config: Config, report: Report) -> None:
    """Check `dataplane`; worker counts matter only to the runtimes that use them."""
    block = config.dataplane
    if block is None:
        return
    if block.runtime not in _RUNTIMES:
        report.error(
            ("dataplane", "runtime"),
            f"dataplane.runtime '{block.runtime}' must be sync, split_io, or tokio",
        )
    if block.runtime == "tokio":
        report.warn(
            ("dataplane", "runtime"),
            "dataplane.runtime 'tokio' does not exist here and runs as split_io",
            "runtime-tokio",
        )
    if block.resolved_runtime == "split_io":
        for key, workers in (
            ("policy_workers", block.policy_workers),
            ("io_workers", block.io_workers),
        ):
            if workers < 1:
                report.error(
                    ("dataplane", key), f"dataplane.{key} must be >= 1 for {block.runtime}"
                )
    for key, limit in (
        ("slot_chunk_size", block.slot_chunk_size),
        ("workers_max", block.workers_max),
    ):
        if limit == 0:
            report.error(("dataplane", key), f"dataplane.{key} must be >= 1 when set")


def validate_orchestrator(config: Config, report: Report) -> None:
    """Check `orchestrator`."""
    block = config.orchestrator
    if block.max_attempts < 1:
        report.error(("orchestrator", "max_attempts"), "orchestrator.max_attempts must be >= 1")
    if block.route_failure_policy not in _ROUTE_FAILURE_POLICIES:
        report.error(
            ("orchestrator", "route_failure_policy"),
            f"orchestrator.route_failure_policy '{block.route_failure_policy}' must be "
            "no_answer or response_rules",
        )
    if block.max_txn_duration_ms == 0:
        report.warn(
            ("orchestrator", "max_txn_duration_ms"),
            "orchestrator.max_txn_duration_ms 0 ends every transaction at its first wait",
            "zero-duration",
        )


def validate_control(config: Config, report: Report) -> None:
    """Check `control`; TLS files are opened when the control plane starts, not here."""
    block = config.control
    if block is None:
        return
    path = ("control", "listen_address")
    if not block.listen_address:
        report.error(path, "control.listen_address must not be empty")
        return
    try:
        parse_socket_address(block.listen_address)
    except ValueError as error:
        report.error(
            path,
            f"control.listen_address '{block.listen_address}' is not a valid socket address: "
            f"{error}",
        )
