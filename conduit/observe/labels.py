"""Values of metric labels (chapter 50 section 2.7)."""

from __future__ import annotations

_QTYPES = {
    1: "A",
    2: "NS",
    5: "CNAME",
    6: "SOA",
    12: "PTR",
    15: "MX",
    16: "TXT",
    28: "AAAA",
    33: "SRV",
    255: "ANY",
}
_QCLASSES = {1: "IN", 3: "CH", 4: "HS"}
_RCODES = {
    0: "NOERROR",
    1: "FORMERR",
    2: "SERVFAIL",
    3: "NXDOMAIN",
    4: "NOTIMP",
    5: "REFUSED",
    6: "YXDOMAIN",
    7: "YXRRSET",
    8: "NXRRSET",
    9: "NOTAUTH",
    10: "NOTZONE",
    16: "BADSIG",
    17: "BADKEY",
    18: "BADTIME",
    19: "BADMODE",
    20: "BADNAME",
    21: "BADALG",
    22: "BADTRUNC",
    23: "BADCOOKIE",
}
_COARSE_RCODES = frozenset({"NOERROR", "NXDOMAIN", "SERVFAIL", "REFUSED"})


def qtype_label(qtype: int) -> str:
    """Return `A`, `AAAA`, ... or `TYPE<n>`."""
    return _QTYPES.get(qtype) or f"TYPE{qtype}"


def qclass_label(qclass: int) -> str:
    """Return `IN`, `CH`, `HS` or `CLASS<n>`."""
    return _QCLASSES.get(qclass) or f"CLASS{qclass}"


def rcode_label(rcode: int | None) -> str:
    """Return the IANA name of an rcode, `OTHER` for none and for unassigned ones."""
    return _RCODES.get(rcode, "OTHER") if rcode is not None else "OTHER"


def coarse_rcode(label: str) -> str:
    """Return the coarse label for an IANA one."""
    return label if label in _COARSE_RCODES else "OTHER"


def ip_family(address: str) -> str:
    """Return `v4` or `v6` for the text of an IP address."""
    return "v6" if ":" in address else "v4"
