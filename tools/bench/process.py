"""Processes under measurement: started, watched through /proc, and ended for sure."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_QUERY = bytes.fromhex("000101000001000000000000076578616d706c6504746573740000060001")


class Measured:
    """A child process with a name, on a loopback port."""

    def __init__(self, name: str, command: Sequence[str], port: int, log: Path) -> None:
        """Start `command` and wait until it answers a query on `port`."""
        self.name = name
        self.port = port
        self.command = command
        self._log = log.open("w")
        started = time.monotonic()
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT
        )
        try:
            wait_until_answering(port, self._process)
        except BaseException:
            self.stop()
            raise
        #: Seconds from the start of the process to its first answer.
        self.start_seconds = time.monotonic() - started

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def cpu_seconds(self) -> float:
        """User and system time used so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def resident_bytes(self) -> int:
        """Resident memory."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

    def stop(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(5)
        self._log.close()


def wait_until_answering(
    port: int, process: subprocess.Popen[bytes] | None = None, seconds: float = 15.0
) -> None:
    """Send queries until one is answered with NOERROR; raises RuntimeError when time runs out."""
    deadline = time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.02)
        while time.monotonic() < deadline:
            if process is not None and process.poll() is not None:
                raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
            try:
                sock.sendto(_QUERY, ("127.0.0.1", port))
                # a SERVFAIL of a forwarder whose upstream is not up yet is no start
                if sock.recv(4096)[3] & 0x0F == 0:
                    return
                time.sleep(0.005)
            except TimeoutError:
                continue
            except ConnectionError:
                time.sleep(0.005)
    raise RuntimeError(f"nothing answers on port {port}")


def find_program(name: str) -> str | None:
    """Return the path of a server program, or None when it is not installed."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")
