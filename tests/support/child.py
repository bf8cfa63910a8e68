"""Child processes that end with the test: terminated, then killed, and never left behind."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    """A process whose standard error and output are collected line by line."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.command = list(command)
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            self.command,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            preexec_fn=_die_with_parent,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def output(self) -> str:
        """Everything printed so far."""
        return "\n".join(self.lines)

    def wait_until(self, ready: Callable[[], bool], what: str, seconds: float = 15.0) -> None:
        """Poll `ready`; fails with the output when the process ends or time runs out."""
        deadline = time.monotonic() + seconds
        while not ready():
            if self.process.poll() is not None:
                self._reader.join(2)
                raise AssertionError(
                    f"{self.command[0]} ended with {self.process.returncode} before it was "
                    f"{what}:\n{self.output}"
                )
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.command[0]} was not {what} in time:\n{self.output}")
            time.sleep(0.01)

    def wait_for_line(self, text: str, seconds: float = 15.0, count: int = 1) -> str:
        """Wait until `count` lines contain `text`; returns the last of them."""
        self.wait_until(
            lambda: sum(text in line for line in list(self.lines)) >= count,
            f"printing {text!r} {count} time(s)",
            seconds,
        )
        return [line for line in self.lines if text in line][count - 1]

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def wait(self, seconds: float = 15.0) -> int:
        """Wait for the end; returns the exit code."""
        code = self.process.wait(seconds)
        self._reader.join(2)
        return code

    def stop(self) -> int:
        """Terminate, kill if needed, and return the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(5)
        self._reader.join(2)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return self.process.returncode

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
