"""The `conduitctl` command: the operator's client of the control plane (chapter 60 section 9).

Commands are imported when they are used, so that the command line itself starts fast.
"""

from __future__ import annotations

from typing import Final

from conduit.cli.ctl.commands import Group

_LAZY: Final = {
    "acl": "conduit.cli.ctl.acl_commands:acl",
    "apply": "conduit.cli.ctl.config_commands:apply",
    "backend": "conduit.cli.ctl.pool_commands:backend",
    "cache": "conduit.cli.ctl.cache_commands:cache",
    "completion": "conduit.cli.ctl.completion:completion",
    "data-source": "conduit.cli.ctl.data_source_commands:data_source",
    "data-source-limits": "conduit.cli.ctl.data_source_commands:data_source_limits",
    "diff": "conduit.cli.ctl.diff_command:diff",
    "events": "conduit.cli.ctl.events_commands:events",
    "export": "conduit.cli.ctl.config_commands:export",
    "health": "conduit.cli.ctl.health_commands:health",
    "metrics": "conduit.cli.ctl.metrics_commands:metrics",
    "orchestrator": "conduit.cli.ctl.limits_commands:orchestrator",
    "pool": "conduit.cli.ctl.pool_commands:pool",
    "reload": "conduit.cli.ctl.config_commands:reload",
    "rhai": "conduit.cli.ctl.limits_commands:rhai",
    "top": "conduit.cli.ctl.top_command:top",
    "trace": "conduit.cli.ctl.config_commands:trace",
    "validate": "conduit.cli.ctl.offline:validate",
}

main = Group(
    "conduitctl",
    lazy=_LAZY,
    root=True,
    help="Inspect and change a running DNS Conduit through its control plane.",
)


if __name__ == "__main__":
    main()
