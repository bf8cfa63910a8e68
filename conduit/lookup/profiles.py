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
    """Return the profiles of a validated configuration; `default` always exists.

    Without a `lookup` block, or without a profile `default` in it, `default` is forward-only.
    """
    profiles: dict[str, Profile] = {"default": _FORWARD_ONLY}
    if config.lookup is not None:
        for name, profile in config.lookup.profiles.items():
            profiles[name] = tuple(
                Provider(provider.type.strip(), provider.cache) for provider in profile.providers
            )
    return profiles
