"""The errors of the language: one class per stage, kinds named as in chapter 36 sections 11.2, 16.

Nothing but these classes (and the two stop signals) leaves the engine, whatever the script.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Position(NamedTuple):
    """A place in a script; both numbers are 1-based, `column` counts characters."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, position {self.column}"


class RhaiError(Exception):
    """Base of every error that a script can cause."""


class ParseError(RhaiError):
    """A text that is not a program (chapter 36 section 16).

    `kind` is the name with its stage, such as ``parse:MissingToken`` or ``lex:MalformedNumber``;
    `message` the text without position; `position` is None where the language gives none.
    """

    def __init__(self, kind: str, message: str, position: Position | None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.position = position

    @property
    def text(self) -> str:
        """The text without the position."""
        return f"Syntax error: {self.message}"

    def __str__(self) -> str:
        return self.text if self.position is None else f"{self.text} ({self.position})"


#: Kinds that `catch` never sees (chapter 36 section 11.1).
UNCATCHABLE = frozenset(
    {
        "ErrorParsing",
        "ErrorTooManyOperations",
        "ErrorTooManyVariables",
        "ErrorTooManyModules",
        "ErrorStackOverflow",
        "ErrorDataTooLarge",
        "ErrorTerminated",
    }
)


class EvalError(RhaiError):
    """A failure at run time.

    `kind` is a name of chapter 36 section 11.2; `message` the text without the outermost position;
    `fields` the extra entries of the catch map; `value` what `throw` carried (kind
    ``ErrorRuntime``); `inner` the wrapped error of a call or module error. An error whose
    `positionless` is set keeps no position where it arises (built-in operators, section 11.3).
    `choice` picks among the positions that one operation has (0 is the usual one). `origin` is
    where it arose even if the language gives it no position; for tools, not for scripts.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        position: Position | None = None,
        *,
        fields: dict[str, Any] | None = None,
        value: Any = None,
        inner: EvalError | None = None,
        positionless: bool = False,
        choice: int = 0,
        parse_kind: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self._message = message
        self.position = position
        self.origin = position
        self.fields = {} if fields is None else fields
        self.value = value
        self.inner = inner
        self.positionless = positionless
        self.choice = choice
        self.parse_kind = parse_kind

    @property
    def message(self) -> str:
        """The text without the outermost position."""
        if self.inner is None:
            return self._message
        return f"{self.inner}\n{self._message}"

    @property
    def innermost(self) -> EvalError:
        """The error at the bottom of the call errors around it."""
        error = self
        while error.inner is not None:
            error = error.inner
        return error

    @property
    def catchable(self) -> bool:
        """Whether `catch` may see it; an error wrapped by `eval` always is."""
        return self.kind not in UNCATCHABLE

    def __str__(self) -> str:
        text = self.message
        return text if self.position is None else f"{text} ({self.position})"


class StopScript(BaseException):
    """Ends a run successfully with `value`; not catchable (chapter 36 section 8.4)."""

    def __init__(self, value: Any = None) -> None:
        super().__init__(value)
        self.value = value


class TerminateScript(BaseException):
    """Ends a run with ``ErrorTerminated``; `token` goes into the text when it is one."""

    def __init__(self, token: Any = None) -> None:
        super().__init__(token)
        self.token = token


def from_parse_error(error: ParseError) -> EvalError:
    """A syntax error met at run time (`eval`, `Fn`, `parse_json`)."""
    return EvalError(
        "ErrorParsing",
        error.text,
        error.position,
        positionless=error.position is None,
        parse_kind=error.kind,
    )


def arithmetic(message: str) -> EvalError:
    """An ``ErrorArithmetic`` of a library function, positioned at the call."""
    return EvalError("ErrorArithmetic", message)


def runtime(message: str) -> EvalError:
    """An ``ErrorRuntime`` that carries its text as string value."""
    return EvalError("ErrorRuntime", f"Runtime error: {message}", value=message)


def mismatch(actual: str, wanted: str, choice: int = 0) -> EvalError:
    """`Data type incorrect: ACTUAL (expecting WANTED)`."""
    return EvalError(
        "ErrorMismatchDataType",
        f"Data type incorrect: {actual} (expecting {wanted})",
        fields={"requested": wanted, "actual": actual},
        choice=choice,
    )


def not_found(signature: str, choice: int = 0) -> EvalError:
    """`Function not found: SIGNATURE`."""
    return EvalError(
        "ErrorFunctionNotFound",
        f"Function not found: {signature}",
        fields={"function": signature},
        choice=choice,
    )


def too_large(what: str) -> EvalError:
    """`ErrorDataTooLarge`; `what` is ``Length of string`` and the like."""
    return EvalError("ErrorDataTooLarge", f"{what} too large")
