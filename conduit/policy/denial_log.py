"""The log of denied clients, with its sampling (chapters 20 section 3.3 and 30 section 11.4)."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

from conduit.config import QueryAccess
from conduit.observe.labels import ip_family
from conduit.observe.logging import LEVELS, OFF, get_log
from conduit.policy.sampling import address_bucket

_log = get_log("conduit_core")
_ALL: Final = 10_000

#: Decides whether the denial of one client address is logged, given the count of the worker.
Sampler = Callable[[str, int], bool]


class DenialLog:
    """What one snapshot logs about denials; the count belongs to the ingress worker."""

    __slots__ = ("_level", "_sampled")

    def __init__(self, access: QueryAccess | None) -> None:
        """`access` is the validated `logging.query_access` block, or None for no log."""
        level = (access.acl_denied or "off") if access is not None else "off"
        self._level = LEVELS.get(level, OFF)
        self._sampled = _sampler(access)

    @property
    def enabled(self) -> bool:
        """True when denials are logged at all."""
        return self._level < OFF

    def denied(
        self, count: int, client: str, listener: str, view: str, action: str, stage: str
    ) -> None:
        """Log one denial; `count` is the worker's number of denials, from 1."""
        if self._sampled(client, count):
            _log.log(
                self._level,
                "client ACL denied query",
                client_ip=client,
                listener=listener,
                view=view,
                action=action,
                stage=stage,
                ip_family=ip_family(client),
            )


def _sampler(access: QueryAccess | None) -> Sampler:
    sample = access.acl_denied_sample if access is not None else None
    if sample is None:
        return lambda client, count: True
    if sample.mode == "every_nth":
        every = max(1, sample.nth or 1)
        return lambda client, count: count % every == 0
    if sample.mode == "per_source":
        limit = int(sample.rate * 100)
        if limit >= _ALL:
            return lambda client, count: True
        return lambda client, count: address_bucket(_packed(client)) < limit
    return lambda client, count: True


def _packed(address: str) -> bytes:
    if ":" in address:
        return socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
    return socket.inet_pton(socket.AF_INET, address)
