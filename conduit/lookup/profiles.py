"""Lookup profiles of a snapshot: which providers a query tries, in order (chapter 40)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from conduit.config import Config

FORWARD = "forward"
CACHE = "cache"


class Provider(NamedTuple):
    """One step of a profile: `kind` is `forward` or `cache`, `cache` the instance name."""

    kind: str
    cache: str | None = None


Profile = tuple[Provider, ...]
_FORWARD_ONLY: Profile = (Provider(FORWARD),)


def compile_profiles(config: Config) -> Mapping[str, Profile]:
    """Return the profiles of a validated configuration.

    Without a `lookup` block there is one, `default`, which forwards. A block without `default`
    has none of that name: queries that choose nothing then fail (chapter 40 section 1.2).
    """
    if config.lookup is None:
        return {"default": _FORWARD_ONLY}
    return {
        name: tuple(
            Provider(provider.type.strip(), provider.cache) for provider in profile.providers
        )
        for name, profile in config.lookup.profiles.items()
    }


def asks_cache(profile: Profile) -> bool:
    """Whether a cache may answer before the query is forwarded."""
    return any(provider.kind == CACHE for provider in profile)
