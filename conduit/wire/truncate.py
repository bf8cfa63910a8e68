"""Cuts a reply to the size that a UDP client can take, on whole records, with TC where due.

Records are only removed from the end of what stays, and compression pointers lead backwards, so
cutting octets is enough; the OPT has a root owner and may move (chapter 20 section 16.2).
"""

from __future__ import annotations

from typing import Final

from conduit.wire.structure import (
    HEADER_LENGTH,
    MALFORMED,
    RecordSpan,
    skip_questions,
    unpack_header,
    walk_records,
)

_TC: Final = 0x02


def fit_to_size(wire: bytes, limit: int) -> tuple[bytes, bool]:
    """`wire` in at most `limit` octets, and whether this procedure set TC ("truncated on send").

    A message within the limit comes back as it is. One that does not decode is cut at the limit.
    """
    if len(wire) <= limit:
        return wire, False
    if len(wire) < HEADER_LENGTH:
        return _cut(wire, limit), True
    header = unpack_header(wire)
    question_end = skip_questions(wire, header[2])
    if question_end < 0:
        return _cut(wire, limit), True
    records: list[RecordSpan] = []
    opt = walk_records(wire, question_end, header, records)
    if opt == MALFORMED:
        return _cut(wire, limit), True

    answers, authorities = header[3], header[4]
    ends = [question_end]
    ends += [record[2] for record in records[: answers + authorities]]
    opt_octets = wire[records[opt][0] : records[opt][2]] if opt >= 0 else b""
    room = limit - len(opt_octets)

    # step 1: no additional records but the OPT
    if ends[-1] <= room:
        return _rebuild(wire, ends[-1], answers, authorities, opt_octets, False), False
    # step 2: no authority records; without answers that loses what was asked for
    if authorities and ends[answers] <= room:
        truncated = not answers
        return _rebuild(wire, ends[answers], answers, 0, opt_octets, truncated), truncated
    # steps 3 and 4: as many whole answers as fit, perhaps none
    kept = answers
    while kept and ends[kept] > room:
        kept -= 1
    reply = _rebuild(wire, ends[kept], kept, 0, opt_octets, True)
    return (reply if len(reply) <= limit else _cut(reply, limit)), True


def _rebuild(
    wire: bytes, end: int, answers: int, authorities: int, opt: bytes, truncated: bool
) -> bytes:
    """The message up to `end` and its OPT, with the counts set to what is there."""
    return b"".join(
        (
            wire[:2],
            bytes((wire[2] | _TC if truncated else wire[2],)),
            wire[3:6],
            answers.to_bytes(2, "big"),
            authorities.to_bytes(2, "big"),
            b"\0\1" if opt else b"\0\0",
            wire[HEADER_LENGTH:end],
            opt,
        )
    )


def _cut(wire: bytes, limit: int) -> bytes:
    """The first `limit` octets with TC set; below three octets there is no TC to set."""
    if limit < 3:
        return wire[: max(limit, 0)]
    return wire[:2] + bytes((wire[2] | _TC,)) + wire[3:limit]
