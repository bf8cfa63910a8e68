"""What a cache instance may store and how it serves, resolved from its configuration block."""

from __future__ import annotations

from dataclasses import dataclass

from conduit.config.model_policy import Cache


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """Settings that every reload applies to the live instance (chapter 40 section 11)."""

    negative: bool = True
    nxdomain_covers_descendants: bool = True
    #: seconds; 0 stores no SERVFAIL
    servfail_ttl: int = 10
    #: seconds that a truncated answer to a UDP client is kept; 0 keeps none
    truncated_ttl: int = 0
    rotate: bool = False
    runs_response_rules: bool = True

    @property
    def tries_ancestors(self) -> bool:
        """Whether the NXDOMAIN of a name answers for the names below it (RFC 8020)."""
        return self.negative and self.nxdomain_covers_descendants


def policy_of(cache: Cache) -> CachePolicy:
    """Return the policy that the configuration block of an instance asks for."""
    truncated = cache.truncated_udp_or_default()
    return CachePolicy(
        negative=cache.negative_cache.enabled,
        nxdomain_covers_descendants=cache.negative_cache.nxdomain_covers_descendants,
        servfail_ttl=cache.negative_cache.servfail_ttl_secs,
        truncated_ttl=(truncated.ttl_secs or 0) if truncated.enabled else 0,
        rotate=cache.rotate_rrset_on_serve,
        runs_response_rules=cache.runs_response_rules,
    )
