"""The words and symbols of the language and how operators bind (chapter 36 sections 2, 4)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from conduit.rhai.errors import Position


def words(text: str) -> list[str]:
    """The blank-separated parts of `text`."""
    return text.split()


class Token(NamedTuple):
    """One lexical element.

    `kind` is the symbol or keyword itself for those; otherwise ``int``, ``float``, ``char``,
    ``string``, ``template`` (text up to a ``${``), ``name``, ``reserved`` or ``end``. `value` is
    the number, the text or the word. `+` and `-` that the lexer takes for signs are of kind
    ``unary+`` and ``unary-``.
    """

    kind: str
    value: Any
    position: Position


KEYWORDS: Final = frozenset(
    words(
        "true false let const if else switch do while until loop for in fn private continue break "
        "return throw try catch import export as"
    )
)

#: Reserved words without any use.
RESERVED: Final = frozenset(
    words(
        "use case async public package super var protected spawn shared is sync static default "
        "thread yield new match await null nil with void go goto module"
    )
)

#: Reserved words that may be called like a function.
CALLABLE_WORDS: Final = frozenset(
    words("print debug type_of eval Fn call curry is_shared is_def_var is_def_fn")
)

#: Of these, the ones that may follow a dot.
METHOD_WORDS: Final = frozenset({"type_of", "call", "curry", "is_shared"})

ALL_RESERVED: Final = RESERVED | CALLABLE_WORDS | {"this"}

RESERVED_SYMBOLS: Final = frozenset(
    words("? # #! === !== ++ -- ~ @ $ := :; ::< -> <- |> <| !. ... (* *)")
)

#: Every symbol, longest first within each length.
SYMBOLS: Final = sorted(
    set(
        words(
            "{ } ( ) [ ] ?[ ?. ?? , ; : :: . .. ..= + += - -= * *= ** **= / /= % %= ^ ^= & && &= "
            "| || |= < <= << <<= > >= >> >>= = == => ! != #{"
        )
    )
    | RESERVED_SYMBOLS,
    key=len,
    reverse=True,
)

#: Reserved symbols that have an error text of their own.
SYMBOL_TEXTS: Final = {
    "===": "'===' is not a valid operator. This is not JavaScript! Should it be '=='?",
    "!==": "'!==' is not a valid operator. This is not JavaScript! Should it be '!='?",
    "->": "'->' is not a valid symbol. This is not C or C++!",
    "<-": "'<-' is not a valid symbol. This is not Go! Should it be '<='?",
    ":=": (
        "':=' is not a valid assignment operator. This is not Go or Pascal! "
        "Should it be simply '='?"
    ),
    ":;": "':;' is not a valid symbol. Should it be '::'?",
    "::<": "'::<>' is not a valid symbol. This is not Rust! Should it be '::'?",
    "(*": (
        "'(* .. *)' is not a valid comment format. This is not Pascal! Should it be '/* .. */'?"
    ),
    "*)": (
        "'(* .. *)' is not a valid comment format. This is not Pascal! Should it be '/* .. */'?"
    ),
}

ASSIGNMENTS: Final = frozenset(words("= += -= *= /= %= **= <<= >>= &= |= ^="))

PRECEDENCE: Final = {
    "<<": 210,
    ">>": 210,
    "**": 190,
    "*": 180,
    "/": 180,
    "%": 180,
    "+": 150,
    "-": 150,
    "unary+": 150,
    "unary-": 150,
    "..": 140,
    "..=": 140,
    "??": 135,
    "<": 130,
    "<=": 130,
    ">": 130,
    ">=": 130,
    "in": 110,
    "!in": 110,
    "==": 90,
    "!=": 90,
    "&&": 60,
    "&": 60,
    "||": 30,
    "|": 30,
    "^": 30,
}

#: Operators after which a `-` directly before a digit is part of the number.
_BEFORE_SIGN_SYMBOLS = words(
    "( [ { #{ ?[ , ; : = .. ..= ?? + - * / % ** << >> < <= > >= == != && & || | ^ !"
)
_BEFORE_SIGN_WORDS = words("while until if in !in return throw unary+ unary- start")
BEFORE_SIGN: Final = frozenset(_BEFORE_SIGN_SYMBOLS) | frozenset(_BEFORE_SIGN_WORDS) | ASSIGNMENTS


def is_identifier(text: str) -> bool:
    """Whether `text` is a proper name: the first character that is not `_` is a letter."""
    stripped = text.lstrip("_")
    return (
        bool(stripped)
        and stripped[0].isalpha()
        and text.isascii()
        and text.replace("_", "a").isalnum()
    )
