"""Reads domain names from wire form, and converts them to and from presentation text.

A *wire name* here is the uncompressed form: length octets and labels, closed by the root's zero
octet, letter case kept. `skip_name` holds the one set of rules for names inside a message;
everything else relies on it.
"""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_NAME_LENGTH: Final = 255
MAX_LABEL_LENGTH: Final = 63

# A name has at most 127 labels, so no honest name needs more pointers than that.
MAX_POINTERS: Final = 127

_SAFE: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
_PLAIN: Final = _SAFE + b"-."
_SAFE_SET: Final = frozenset(_SAFE)
_IDNA_PREFIX: Final = b"xn--"


def skip_name(wire: bytes, offset: int) -> int:
    """Offset of the first octet after the name at `offset` in a message, -1 when malformed.

    Checks the whole name, the parts behind compression pointers included: label types, message
    bounds, 255 octets in all, and that each pointer leads strictly before the start of the part
    being read (RFC 1035 section 4.1.4, chapter 20 section 8). Never raises; at most 127 pointers
    are followed.
    """
    end = len(wire)
    start = position = offset
    after = -1
    total = 1
    pointers = 0
    while 0 <= position < end:
        octet = wire[position]
        if octet == 0:
            return position + 1 if after < 0 else after
        if octet <= MAX_LABEL_LENGTH:
            total += octet + 1
            if total > MAX_NAME_LENGTH:
                return -1
            position += octet + 1
        elif octet >= 0xC0:
            if position + 1 >= end:
                return -1
            target = (octet & 0x3F) << 8 | wire[position + 1]
            pointers += 1
            if target >= start or pointers > MAX_POINTERS:
                return -1
            if after < 0:
                after = position + 2
            # each target lies before the last one, so the walk ends
            start = position = target
        else:
            return -1
    return -1


def read_name(wire: bytes, offset: int) -> tuple[bytes, int] | None:
    """The uncompressed name at `offset` and the offset after it; None when malformed."""
    after = skip_name(wire, offset)
    if after < 0:
        return None
    position = offset
    start = offset
    name = b""
    # skip_name has checked every octet that this loop touches
    while True:
        octet = wire[position]
        if octet == 0:
            return name + wire[start : position + 1], after
        if octet <= MAX_LABEL_LENGTH:
            position += octet + 1
        else:
            name += wire[start:position]
            start = position = (octet & 0x3F) << 8 | wire[position + 1]


def fold(name: bytes) -> bytes:
    """`name` with ASCII letters in lower case (RFC 4343 section 3)."""
    # length octets are at most 63, below "A" (65), so lower() leaves them alone
    return name.lower()


def split_labels(name: bytes) -> list[bytes]:
    """The labels of a wire name without the root label; an unclosed name ends where it ends."""
    labels = []
    position = 0
    end = len(name)
    while position < end:
        octet = name[position]
        if octet == 0:
            break
        labels.append(name[position + 1 : position + 1 + octet])
        position += octet + 1
    return labels


def name_to_text(name: bytes) -> str:
    """The absolute presentation form of a wire name (chapter 30 section 3.3).

    Case is kept, the final dot is always there, the root is `.`. Octets outside 0x21-0x7E become a
    backslash and three **octal** digits. A label that starts with lower-case `xn--` and is valid
    IDNA is shown as Unicode. For rules and logs; `name_from_text` reads decimal escapes instead.
    """
    labels = split_labels(name)
    if not labels:
        return "."
    joined = b".".join(labels)
    if (
        not joined.translate(None, _PLAIN)
        and joined.count(b".") == len(labels) - 1
        and b".-" not in joined
        and joined[:1] != b"-"
        and _IDNA_PREFIX not in joined
    ):
        return joined.decode("ascii") + "."
    return "".join([_label_to_text(label) + "." for label in labels])


def _label_to_text(label: bytes) -> str:
    if label.startswith(_IDNA_PREFIX):
        decoded = _idna_to_unicode(label)
        if decoded is not None:
            return decoded
    parts = []
    for index, octet in enumerate(label):
        if (
            octet in _SAFE_SET
            or (octet == 0x2D and index > 0)  # "-"
            or (octet == 0x2A and index == 0)  # "*"
        ):
            parts.append(chr(octet))
        elif 0x20 < octet < 0x7F:
            parts.append("\\" + chr(octet))
        else:
            parts.append(f"\\{octet:03o}")
    return "".join(parts)


def _idna_to_unicode(label: bytes) -> str | None:
    """The U-label of an A-label, None when it is not one (RFC 5890 section 2.3.2.1)."""
    # "a-label" compares without case, so the whole label is folded first
    encoded = label[len(_IDNA_PREFIX) :].lower()
    if encoded.translate(None, _PLAIN) or b"." in encoded:
        return None
    try:
        text = encoded.decode("punycode")
        if text.encode("punycode") != encoded:
            return None
    except ValueError:
        return None
    return text if _is_u_label(text) else None


def _is_u_label(text: str) -> bool:
    """Whether `text` has a non-ASCII letter or symbol and is its own normal form."""
    if text.isascii() or unicodedata.normalize("NFKC", text) != text or text.lower() != text:
        return False
    if unicodedata.category(text[0])[0] == "M":
        return False
    # control, format, unassigned, private and separator characters, and the ideographic full stop
    # (a label separator in UTS 46), would spoof or break text
    return "\u3002" not in text and all(
        unicodedata.category(character)[0] not in "CZ" for character in text
    )


def name_from_text(text: str) -> bytes:
    r"""The wire name of presentation text (RFC 1035 section 5.1); the final dot may be missing.

    Accepts `\X` for a literal character and `\DDD` with three decimal digits. A label with
    non-ASCII characters becomes an `xn--` label. For tools and configuration checks.

    Raises ValueError when the text is empty or no legal name.
    """
    if text == ".":
        return b"\0"
    if not text:
        raise ValueError("a domain name must not be empty (the root is '.')")
    name = bytearray()
    for label in _split_text(text):
        wire_label = _label_from_characters(label, text)
        if not wire_label:
            raise ValueError(f"empty label in domain name '{text}'")
        if len(wire_label) > MAX_LABEL_LENGTH:
            raise ValueError(f"label longer than 63 octets in domain name '{text}'")
        name.append(len(wire_label))
        name += wire_label
    name.append(0)
    if len(name) > MAX_NAME_LENGTH:
        raise ValueError(f"domain name longer than 255 octets: '{text}'")
    return bytes(name)


def _split_text(text: str) -> list[list[int | str]]:
    """Labels as lists of characters (unescaped) and octets (from escapes)."""
    labels: list[list[int | str]] = [[]]
    index = 0
    while index < len(text):
        character = text[index]
        index += 1
        if character == ".":
            if index < len(text):
                labels.append([])
        elif character != "\\":
            labels[-1].append(character)
        elif index == len(text):
            raise ValueError(f"domain name ends in a backslash: '{text}'")
        elif text[index].isascii() and text[index].isdigit():
            digits = text[index : index + 3]
            if len(digits) < 3 or not (digits.isascii() and digits.isdigit()) or int(digits) > 255:
                raise ValueError(f"bad escape '\\{digits}' in domain name '{text}'")
            labels[-1].append(int(digits))
            index += 3
        else:
            labels[-1].append(ord(text[index]) if text[index].isascii() else text[index])
            index += 1
    return labels


def _label_from_characters(label: list[int | str], text: str) -> bytes:
    if all(isinstance(item, int) or item.isascii() for item in label):
        return bytes(item if isinstance(item, int) else ord(item) for item in label)
    unicode_label = "".join(item if isinstance(item, str) else chr(item) for item in label)
    normal = unicodedata.normalize("NFKC", unicode_label.lower())
    if any(isinstance(item, int) and item > 0x7F for item in label) or not _is_u_label(normal):
        raise ValueError(f"label is no valid internationalized label in domain name '{text}'")
    return _IDNA_PREFIX + normal.encode("punycode")
