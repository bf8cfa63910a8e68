"""Wire names: the rules of pointers and lengths, and presentation text."""

from __future__ import annotations

import dns.name
import pytest

from conduit.wire import fold, name_from_text, name_to_text, read_name, skip_name
from conduit.wire.name import MAX_POINTERS

LONG = b"\x3f" + b"a" * 63


def pointer(offset: int) -> bytes:
    return bytes((0xC0 | offset >> 8, offset & 0xFF))


def test_reads_a_plain_name() -> None:
    wire = b"xx\3www\7Example\3com\0rest"
    assert read_name(wire, 2) == (b"\3www\7Example\3com\0", 19)
    assert skip_name(wire, 2) == 19


def test_reads_the_root() -> None:
    assert read_name(b"\0", 0) == (b"\0", 1)


def test_pointer_to_a_pointer_gives_the_full_name() -> None:
    wire = b"\3com\0" + pointer(0) + pointer(5) + b"\1a" + pointer(7)
    assert read_name(wire, 7) == (b"\3com\0", 9)
    assert read_name(wire, 9) == (b"\1a\3com\0", 13)


@pytest.mark.parametrize(
    ("wire", "offset"),
    [
        (pointer(0), 0),  # to itself
        (b"\1a" + pointer(0), 0),  # to its own start, through a label
        (pointer(2) + pointer(0), 0),  # ring of two
        (pointer(2) + pointer(0), 2),
        (b"\1a\1b" + pointer(2), 0),  # to a label inside the same name
        (b"\1a" + pointer(0) + b"\0", 2),  # to a label that leads back
        (pointer(4) + b"\0\0\1a\0", 0),  # forward
        (b"\xc0", 0),  # half a pointer
        (b"\1a", 0),  # unclosed
        (b"\5abc", 0),  # label past the end
        (b"\x40" + b"a" * 64 + b"\0", 0),  # label type 01, also "64 octets"
        (b"\x80\0", 0),  # label type 10
        (b"", 0),
        (b"\0", 1),
        (b"\0", -1),
    ],
)
def test_malformed_names(wire: bytes, offset: int) -> None:
    assert skip_name(wire, offset) == -1
    assert read_name(wire, offset) is None


def test_label_of_63_octets_is_the_longest() -> None:
    assert skip_name(LONG + b"\0", 0) == 65


def test_255_octets_are_the_longest_name() -> None:
    longest = LONG * 3 + b"\x3d" + b"a" * 61 + b"\0"
    assert len(longest) == 255
    assert skip_name(longest, 0) == 255
    assert skip_name(LONG * 3 + b"\x3e" + b"a" * 62 + b"\0", 0) == -1


def test_256_octets_through_a_pointer() -> None:
    base = LONG * 3 + b"\0"  # 193 octets
    fits = b"\x3d" + b"b" * 61 + pointer(0)
    too_long = b"\x3e" + b"b" * 62 + pointer(0)
    assert skip_name(base + fits, len(base)) == len(base) + 64
    found = read_name(base + fits, len(base))
    assert found is not None
    assert len(found[0]) == 255
    assert skip_name(base + too_long, len(base)) == -1


def chain(pointers: int) -> tuple[bytes, int]:
    """A root name and `pointers` pointers, each to the one before; the offset of the last."""
    wire = b"\0"
    last = 0
    for _ in range(pointers):
        here = len(wire)
        wire += pointer(last)
        last = here
    return wire, last


def test_chain_of_pointers_is_bounded() -> None:
    wire, last = chain(MAX_POINTERS)
    assert read_name(wire, last) == (b"\0", len(wire))
    wire, last = chain(200)
    assert skip_name(wire, last) == -1


def test_fold_leaves_length_octets_alone() -> None:
    name = b"\x3f" + b"A" * 63 + b"\1Z\1[\0"
    assert fold(name) == b"\x3f" + b"a" * 63 + b"\1z\1[\0"


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([], "."),
        ([b"www", b"example", b"com"], "www.example.com."),
        ([b"ExAmPle", b"CoM"], "ExAmPle.CoM."),
        ([b"_dmarc", b"a-b"], "_dmarc.a-b."),
        ([b"-a", b"b"], r"\-a.b."),
        ([b"a", b"-b"], r"a.\-b."),
        ([b"*", b"a"], "*.a."),
        ([b"a*", b"*a*"], r"a\*.*a\*."),
        ([b"a.b", b"c"], r"a\.b.c."),
        ([b'a"b', b"c@d", b"e\\f"], r"a\"b.c\@d.e\\f."),
        ([b"a b\0c"], r"a\040b\000c."),
        ([b"\x7f\xff\xc3\xbc"], r"\177\377\303\274."),
        ([b"xn--bcher-kva", b"example"], "b\u00fccher.example."),
        ([b"xn--Bcher-KVA", b"Example"], "b\u00fccher.Example."),
        ([b"xn--strae-oqa"], "stra\u00dfe."),
        ([b"XN--bcher-kva"], "XN--bcher-kva."),  # only the lower-case prefix counts
        ([b"xn--"], "xn--."),
        ([b"xn--abc-"], "xn--abc-."),  # decodes to plain ASCII
        ([b"xn--99999999"], "xn--99999999."),
        ([b"xn--a b-kva"], r"xn--a\040b-kva."),
        ([b"a-xn--bcher-kva"], "a-xn--bcher-kva."),
    ],
)
def test_name_to_text(labels: list[bytes], text: str) -> None:
    name = b"".join(bytes((len(label),)) + label for label in labels) + b"\0"
    assert name_to_text(name) == text


@pytest.mark.parametrize("character", ["\u202e", "\u3002", "\ufb01", "\u0301", "\ue000", "\xa0"])
def test_characters_that_are_no_u_label_keep_the_xn_form(character: str) -> None:
    label = b"xn--" + character.encode("punycode")
    assert name_to_text(bytes((len(label),)) + label + b"\0") == label.decode() + "."


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (".", b"\0"),
        ("www.example.com.", b"\3www\7example\3com\0"),
        ("www.example.com", b"\3www\7example\3com\0"),
        (r"a\.b.c", b"\3a.b\1c\0"),
        (r"\000\255\065", b"\3\0\xff\x41\0"),
        (r"a\\b", b"\3a\\b\0"),
        ("*.a", b"\1*\1a\0"),
        ("B\u00fccher.example", b"\x0dxn--bcher-kva\7example\0"),
        ("a" * 63, LONG + b"\0"),
    ],
)
def test_name_from_text(text: str, name: bytes) -> None:
    assert name_from_text(text) == name
    if text.isascii():
        assert dns.name.from_text(text).to_wire() == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must not be empty"),
        ("..", "empty label"),
        ("a..b", "empty label"),
        (".a", "empty label"),
        ("a" * 64, "longer than 63"),
        (".".join(["a" * 63] * 4), "longer than 255"),
        ("a\\", "ends in a backslash"),
        (r"a\25", "bad escape"),
        (r"a\256", "bad escape"),
        (r"a\1x2", "bad escape"),
        ("a\u202eb", "no valid internationalized label"),
        ("\u00fc\\255", "no valid internationalized label"),
    ],
)
def test_name_from_text_refuses(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        name_from_text(text)
