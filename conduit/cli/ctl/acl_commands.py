"""`acl check`: what the client ACLs decide for an address, of the service or of a file."""

from __future__ import annotations

import ipaddress
from typing import Any

import click

from conduit.cli.ctl import context
from conduit.cli.ctl.commands import Command, group
from conduit.cli.ctl.errors import CtlError
from conduit.cli.ctl.output import encoded, optional

acl = group("acl", "Client ACLs.")


@acl.command("check", cls=Command)
@click.argument("ip")
@click.option("--listener", metavar="NAME", help="one listener instead of all of them")
@click.option("--file", "path", metavar="PATH", help="a configuration file instead of the service")
def check(ip: str, listener: str | None, path: str | None) -> None:
    """Show what the client ACLs decide for an address, as JSON."""
    body = _live(ip, listener) if path is None else _of_file(ip, listener, path)
    # JSON is the text of this command
    wanted = "yaml" if context.output_format() == "yaml" else "json"
    click.echo(encoded(body, wanted), nl=False)


def _address(ip: str) -> str:
    try:
        return str(ipaddress.ip_address(ip))
    except ValueError as error:
        raise CtlError(f"invalid ip address '{ip}'") from error


def _of_file(ip: str, listener: str | None, path: str) -> dict[str, Any]:
    from conduit.cli.ctl.offline import compile_checked, load_checked
    from conduit.policy.acl_check import check_acl

    snapshot = compile_checked(load_checked(path))
    address = _address(ip)
    try:
        results = check_acl(snapshot.policy, snapshot.config.listeners, address, listener)
    except ValueError as error:
        raise CtlError(str(error)) from error
    return {"ip": address, "source": "file", "results": results}


def _live(ip: str, listener: str | None) -> dict[str, Any]:
    # a bad client file is told before a bad address
    settings = context.settings()
    address = _address(ip)
    from conduit.cli.ctl.connection import Connection
    from conduit.v1 import control_pb2 as pb
    from conduit.v1.control_pb2_grpc import ConduitControlStub

    with Connection(settings) as connection:
        request = pb.CheckAclRequest(ip=address, listener=listener)
        response = connection.call(ConduitControlStub, "CheckAcl", request)
    return {
        "ip": response.ip,
        "source": "live",
        "results": [_result(result) for result in response.results],
    }


def _result(result: Any) -> dict[str, str]:
    tag = optional(result, "tag")
    return {
        "listener": result.listener,
        "decision": result.decision,
        **({} if tag is None else {"tag": tag}),
        "matched": result.matched,
        "action": result.action,
    }
