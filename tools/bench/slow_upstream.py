"""An upstream that answers every query after a fixed delay: `python -m tools.bench.slow_upstream`.

One thread, one queue in order of arrival; the delay is the same for all, so the queue is sorted.
"""

from __future__ import annotations

import socket
import sys
import time
from collections import deque


def serve(port: int, delay: float) -> None:
    """Answer queries on 127.0.0.1 with NOERROR and one A record, `delay` seconds after arrival."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    sock.bind(("127.0.0.1", port))
    waiting: deque[tuple[float, bytes, tuple[str, int]]] = deque()
    record = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x01"
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, query, peer = waiting.popleft()
            end = query.index(b"\0", 12) + 5
            header = query[:2] + b"\x84\x00\x00\x01\x00\x01\x00\x00\x00\x00"
            sock.sendto(header + query[12:end] + record, peer)
        sock.settimeout(max(0.0005, waiting[0][0] - now) if waiting else None)
        try:
            query, peer = sock.recvfrom(4096)
            if len(query) > 16:
                waiting.append((time.monotonic() + delay, query, peer))
        except (TimeoutError, BlockingIOError):
            pass


if __name__ == "__main__":
    serve(int(sys.argv[1]), float(sys.argv[2]))
