"""The process as the metrics page shows it, from `/proc` (chapter 50 section 2.13)."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Mapping

from conduit.observe import families
from conduit.observe.counters import Key
from conduit.observe.families import Family


def _status(field: str) -> int:
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return 0


def _open_descriptors() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def _descriptor_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 0 if soft == resource.RLIM_INFINITY else soft


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system


def process_readings() -> dict[Family, Callable[[], Mapping[Key, float]]]:
    """Return the readings of the process families."""

    def single(value: Callable[[], float]) -> Callable[[], Mapping[Key, float]]:
        return lambda: {(): value()}

    return {
        families.PROCESS_RESIDENT: single(lambda: _status("VmRSS") * 1024),
        families.PROCESS_OPEN_FDS: single(_open_descriptors),
        families.PROCESS_MAX_FDS: single(_descriptor_limit),
        families.PROCESS_THREADS: single(lambda: _status("Threads")),
        families.PROCESS_CPU: single(_cpu_seconds),
    }
