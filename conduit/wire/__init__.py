"""DNS messages as octets: structural parse, names, truncation, rewriting, synthesized replies."""

from __future__ import annotations

from conduit.wire.enums import (
    class_name,
    edns_option_name,
    opcode_name,
    parse_edns_option,
    parse_opcode,
    parse_query_class,
    parse_rcode,
    parse_record_type,
    rcode_name,
    record_type_name,
)
from conduit.wire.extended_error import ExtendedError
from conduit.wire.message import (
    extended_rcode,
    is_truncated,
    message_decodes,
    message_id,
    rcode,
    reply_matches,
    with_id,
)
from conduit.wire.name import fold, name_from_text, name_to_text, read_name, skip_name
from conduit.wire.query import Query, parse_query
from conduit.wire.records import Record, Section, iter_records
from conduit.wire.reject import RejectReason
from conduit.wire.synthesize import synthesize_reply
from conduit.wire.truncate import fit_to_size

__all__ = [
    "ExtendedError",
    "Query",
    "Record",
    "RejectReason",
    "Section",
    "class_name",
    "edns_option_name",
    "extended_rcode",
    "fit_to_size",
    "fold",
    "is_truncated",
    "iter_records",
    "message_decodes",
    "message_id",
    "name_from_text",
    "name_to_text",
    "opcode_name",
    "parse_edns_option",
    "parse_opcode",
    "parse_query",
    "parse_query_class",
    "parse_rcode",
    "parse_record_type",
    "rcode",
    "rcode_name",
    "read_name",
    "record_type_name",
    "reply_matches",
    "skip_name",
    "synthesize_reply",
    "with_id",
]
