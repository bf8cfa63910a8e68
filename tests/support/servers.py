"""Real DNS servers from Debian packages as children of a test, on loopback ports."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.child import Child
from tests.support.client import answers
from tests.support.ports import free_port

ZONE = """$ORIGIN example.test.
$TTL 3600
@      SOA   ns1 hostmaster 1 3600 600 86400 300
@      NS    ns1
ns1    A     192.0.2.53
www    A     192.0.2.10
www    AAAA  2001:db8::10
api    A     192.0.2.11
alias  CNAME www
*.wild A     192.0.2.99
"""
ZONE += "".join(f"big A 192.0.2.{n}\n" for n in range(100, 160))
ZONE += "".join(f'bigtxt TXT "{n:02d}{"t" * 200}"\n' for n in range(40))
DANGLING_ZONE = """$ORIGIN dangletest.test.
$TTL 3600
@      SOA   ns1 hostmaster 1 3600 600 86400 300
@      NS    ns1.example.test.
dangle CNAME gone
"""


def _program(name: str, package: str) -> str:
    for folder in (None, "/usr/sbin:/sbin:/usr/local/sbin"):
        found = shutil.which(name, path=folder)
        if found:
            return found
    pytest.skip(f"{name} is not installed (Debian package {package})")


class Server:
    """A running server: `host`, `port`, `address` as `ip:port`, and its output."""

    def __init__(self, child: Child, host: str, port: int) -> None:
        self.child = child
        self.host = host
        self.port = port
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def stop(self) -> None:
        """End the process."""
        self.child.stop()

    def query_log(self, text: str) -> int:
        """Number of lines of its output that contain `text`."""
        return sum(text in line for line in list(self.child.lines))


def start_nsd(folder: Path, host: str = "127.0.0.1", port: int | None = None) -> Server:
    """NSD with `example.test` and `dangletest.test`, no rate limit."""
    program = _program("nsd", "nsd")
    port = port or free_port(host)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "example.zone").write_text(ZONE)
    (folder / "dangle.zone").write_text(DANGLING_ZONE)
    (folder / "nsd.conf").write_text(
        f"""server:
  ip-address: {host}@{port}
  username: ""
  zonesdir: "{folder}"
  database: ""
  pidfile: "{folder}/nsd.pid"
  xfrdfile: "{folder}/xfrd.state"
  zonelistfile: "{folder}/zone.list"
  server-count: 1
  rrl-ratelimit: 0
  rrl-whitelist-ratelimit: 0
remote-control:
  control-enable: no
zone:
  name: example.test
  zonefile: example.zone
zone:
  name: dangletest.test
  zonefile: dangle.zone
"""
    )
    server = Server(Child([program, "-d", "-c", str(folder / "nsd.conf")]), host, port)
    server.child.wait_until(lambda: answers((host, port), "example.test."), "answering")
    return server


def start_unbound(folder: Path) -> Server:
    """Unbound with the local zones of chapter 70."""
    program = _program("unbound", "unbound")
    host, port = "127.0.0.1", free_port()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unbound.conf").write_text(
        f"""server:
  interface: {host}@{port}
  access-control: 127.0.0.0/8 allow
  username: ""
  chroot: ""
  directory: "{folder}"
  pidfile: "{folder}/unbound.pid"
  use-syslog: no
  do-daemonize: no
  module-config: "iterator"
  local-zone: "smoke.test." static
  local-data: "www.smoke.test. 300 IN A 192.0.2.20"
  local-zone: "localcname.test." static
  local-data: "target.localcname.test. 300 IN A 192.0.2.40"
  local-data: "alias.localcname.test. 300 IN CNAME target.localcname.test."
remote-control:
  control-enable: no
"""
    )
    server = Server(Child([program, "-d", "-c", str(folder / "unbound.conf")]), host, port)
    server.child.wait_until(lambda: answers((host, port), "www.smoke.test.", "A"), "answering")
    return server


def start_dnsmasq(folder: Path, *options: str) -> Server:
    """dnsmasq as a stub with a query log, and the records of chapter 70."""
    program = _program("dnsmasq", "dnsmasq-base")
    host, port = "127.0.0.1", free_port()
    folder.mkdir(parents=True, exist_ok=True)
    server = Server(
        Child(
            [
                program,
                "--no-daemon",
                "--conf-file=/dev/null",
                f"--port={port}",
                f"--listen-address={host}",
                "--bind-interfaces",
                "--no-resolv",
                "--no-hosts",
                "--user=",
                f"--pid-file={folder}/dnsmasq.pid",
                "--log-queries",
                "--log-facility=-",
                "--local-ttl=300",
                "--host-record=www.smoke.test,192.0.2.20",
                "--local=/aonly.smoke.test/",
                "--host-record=www.aonly.smoke.test,192.0.2.42",
                "--host-record=target.cname.smoke.test,192.0.2.41",
                "--cname=alias.cname.smoke.test,target.cname.smoke.test",
                *options,
            ]
        ),
        host,
        port,
    )
    server.child.wait_until(lambda: answers((host, port), "www.smoke.test.", "A"), "answering")
    return server
