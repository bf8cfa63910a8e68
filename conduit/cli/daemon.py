"""The `conduit` command: arguments, start-up errors and exit codes (chapter 10 section 2)."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from conduit import __version__

DEFAULT_PATH = "conduit.yaml"
DEFAULT_DEMO_ADDRESS = "127.0.0.1:5300"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the daemon's command line."""
    parser = argparse.ArgumentParser(
        prog="conduit",
        description="DNS Conduit: a policy-driven DNS forwarder.",
        epilog="Signals: SIGHUP reloads the file, SIGTERM and SIGINT drain and stop; "
        "a second one stops at once. RUST_LOG overrides logging.level.",
    )
    parser.add_argument(
        "path", nargs="?", metavar="CONFIG", help=f"configuration file (default {DEFAULT_PATH})"
    )
    parser.add_argument("-c", "--config", metavar="PATH", help="configuration file")
    parser.add_argument(
        "--check", action="store_true", help="load and validate the file, then exit"
    )
    parser.add_argument(
        "--demo",
        nargs="?",
        const=DEFAULT_DEMO_ADDRESS,
        metavar="ADDRESS",
        help="also run a small authoritative server for demo.test. on ADDRESS "
        f"(default {DEFAULT_DEMO_ADDRESS}), to try the service without any other DNS server",
    )
    parser.add_argument("--version", action="version", version=f"conduit {__version__}")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the daemon; returns the exit code (0 after a clean stop, 1 after a failed start)."""
    options = build_parser().parse_args(arguments)
    if options.path is not None and options.config is not None and options.path != options.config:
        sys.stderr.write("Error: two configuration files given; use -c PATH or PATH, not both\n")
        return 1
    path = options.config or options.path or DEFAULT_PATH
    if options.check:
        from conduit.cli.check import main as check_main

        return check_main([path])
    # the long import comes after --help and --version have been answered
    from conduit.cli.service import run_service

    code = run_service(path, options.demo)
    sys.stdout.flush()
    sys.stderr.flush()
    # threads that still block on an upstream must not delay the end of the process
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
