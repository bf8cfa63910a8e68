"""200,000 random and mutated messages through parse and pipeline: none raises.

The seed changes with each run and is printed when a message fails, with the message itself.
"""

from __future__ import annotations

import os
import random
import sys
import time

import dns.edns
import dns.message
import dns.rdatatype
import dns.rrset

from conduit.pipeline import Environment, run
from conduit.snapshot import RuntimeSnapshot
from conduit.transaction import Transaction
from conduit.upstream.exchange import ExchangeResult
from conduit.wire import Query, RejectReason, parse_query, reply_matches
from tests.support.scripted import FakeListener, snapshot_of

COUNT = int(os.environ.get("CONDUIT_FUZZ_MESSAGES", "200000"))
YAML = (
    "pools: [{name: default, backends: [{address: '127.0.0.1:5301'},"
    " {address: '127.0.0.1:5302'}]}]\n"
)


def seeds() -> list[bytes]:
    """Real messages of many shapes."""
    found: list[bytes] = []
    names = ["www.example.test.", ".", "a." * 100 + "test.", "x" * 63 + ".test.", "*.test."]
    for name in names:
        for qtype in ("A", "ANY", "AXFR", "HTTPS", "TYPE65280"):
            query = dns.message.make_query(name, qtype)
            found.append(query.to_wire())
            options = [
                dns.edns.ECSOption("192.0.2.0", 24),
                dns.edns.GenericOption(10, b"12345678"),
                dns.edns.GenericOption(65001, b""),
            ]
            query.use_edns(0, 0x8000, 1232, options=options)
            found.append(query.to_wire())
            reply = dns.message.make_response(query)
            for rtype, text in (
                ("A", "192.0.2.1"),
                ("CNAME", "b.example.test."),
                ("MX", "10 mail.example.test."),
                ("SOA", "a. b. 1 2 3 4 5"),
                ("SRV", "1 2 3 c.example.test."),
                ("TXT", '"text"'),
            ):
                reply.answer.append(dns.rrset.from_text(name, 60, "IN", rtype, text))
            found.append(reply.to_wire())
    return found


def mutate(rng: random.Random, seed: bytes) -> bytes:
    data = bytearray(seed)
    for _ in range(rng.randrange(1, 6)):
        kind = rng.randrange(6)
        place = rng.randrange(len(data)) if data else 0
        if kind == 0 and data:
            data[place] = rng.randrange(256)
        elif kind == 1 and data:
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[place : place + rng.randrange(1, 8)]
        elif kind == 3:
            data[place:place] = rng.randbytes(rng.randrange(1, 8))
        elif kind == 4 and len(data) > 12:
            # counts and pointers are where parsers break
            data[rng.choice((4, 5, 6, 7, 8, 9, 10, 11))] = rng.choice((0, 1, 2, 255))
        elif kind == 5 and data:
            data[place : place + 2] = bytes((0xC0 | rng.randrange(4), rng.randrange(256)))
    return bytes(data)


def drive(
    query: Query, snapshot: RuntimeSnapshot, protocol: str, reply: bytes | None, number: int
) -> Transaction:
    txn = Transaction(
        number, number, query, snapshot, FakeListener(protocol), "192.0.2.9", None, 0.0
    )
    environment = Environment(clock=lambda: 0.0)
    for effect in run(txn, environment):
        reply_matches(reply or b"", 7, effect.question)
        if reply is None or len(reply) < 12:
            txn.effect_result = ExchangeResult(None, "timeout")
        else:
            txn.effect_result = ExchangeResult(effect.wire[:2] + reply[2:])
    return txn


def test_no_message_raises() -> None:
    seed = random.SystemRandom().randrange(2**32)
    rng = random.Random(seed)
    originals = seeds()
    snapshot = snapshot_of(YAML)
    parsed = 0
    rejected: dict[RejectReason, int] = {}
    shown = time.monotonic()
    for number in range(COUNT):
        if number % 8 == 0:
            data = rng.randbytes(rng.randrange(0, 120))
        else:
            data = mutate(rng, rng.choice(originals))
        try:
            query = parse_query(data)
            if isinstance(query, RejectReason):
                rejected[query] = rejected.get(query, 0) + 1
                # what is no query is tried as an answer
                if number % 4 == 0:
                    valid = parse_query(originals[0])
                    assert isinstance(valid, Query)
                    txn = drive(valid, snapshot, rng.choice(("udp", "tcp")), data, number)
                    assert txn.reply is not None
                continue
            parsed += 1
            assert query.qname_text.endswith(".")
            assert query.option_codes == tuple(sorted(set(query.option_codes)))
            txn = drive(query, snapshot, rng.choice(("udp", "tcp")), mutate(rng, data), number)
            assert txn.reply is not None
            assert txn.reply[:2] == data[:2]
            if not txn.listener.is_tcp:
                assert len(txn.reply) <= (query.udp_payload_size or 512)
        except Exception as error:
            raise AssertionError(f"seed {seed}, message {data.hex()}: {error!r}") from error
        if time.monotonic() - shown > 5:
            shown = time.monotonic()
            sys.stderr.write(f"fuzz: {number} of {COUNT} messages\n")
    assert parsed > COUNT // 50
    assert rejected[RejectReason.WIRE_ERROR] > COUNT // 50
    assert set(rejected) == set(RejectReason)
