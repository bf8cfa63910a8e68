"""Names the reasons for which a client message is refused before it becomes a query."""

from __future__ import annotations

from enum import Enum


class RejectReason(str, Enum):
    """Values of the `reason` label of `conduit_parse_rejected_total` (chapter 20 section 8)."""

    EMPTY = "empty"
    WIRE_ERROR = "wire_error"
    NOT_QUERY = "not_query"
    NO_QUESTION = "no_question"
    MULTI_QUESTION = "multi_question"
