"""Cuts a script into tokens, one at a time, because errors count only once they are reached.

Follows chapter 36 section 2. Literals are read in `literals`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from conduit.rhai.errors import ParseError, Position
from conduit.rhai.tokens import (
    ALL_RESERVED,
    BEFORE_SIGN,
    KEYWORDS,
    RESERVED_SYMBOLS,
    SYMBOL_TEXTS,
    SYMBOLS,
    Token,
    is_identifier,
)

_BLANKS: Final = " \t\n\f\r"
_DIGITS: Final = frozenset("0123456789")
_NAME: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_SYMBOLS_BY_FIRST: Final[dict[str, list[str]]] = {}
for _symbol in SYMBOLS:
    _SYMBOLS_BY_FIRST.setdefault(_symbol[0], []).append(_symbol)


class Tokenizer:
    """The lexer. `next_token` reads on; `resume_template` continues after a `${ … }`."""

    __slots__ = ("_lines", "_max_string", "_previous", "at", "text")

    def __init__(self, text: str, max_string_size: int = 0) -> None:
        self.text = text
        self.at = 0
        self._previous = "start"
        self._max_string = max_string_size
        lines = [0]
        index = text.find("\n")
        while index >= 0:
            lines.append(index + 1)
            index = text.find("\n", index + 1)
        self._lines = lines

    def position(self, index: int) -> Position:
        """The place of the character at `index`."""
        line = bisect_right(self._lines, index)
        return Position(line, index - self._lines[line - 1] + 1)

    def error(self, kind: str, message: str, index: int) -> ParseError:
        """A lexical error at the character `index`."""
        return ParseError(f"lex:{kind}", message, self.position(index))

    def next_token(self) -> Token:
        """The next token; the kind ``end`` comes again and again. Raises ParseError."""
        token = self._read()
        self._previous = token.kind
        return token

    def _read(self) -> Token:
        self._skip_blanks()
        text = self.text
        at = self.at
        position = self.position(at)
        if at >= len(text):
            return Token("end", None, position)
        first = text[at]
        if first in _DIGITS:
            return self._number(at, position)
        if first in _NAME:
            return self._word(at, position)
        if first == '"':
            return self._string(at, position)
        if first == "'":
            return self._character(at, position)
        if first == "`":
            self.at = at + 1
            self._skip_first_break()
            return self._template(position)
        if first == "#":
            hashes = at
            while hashes < len(text) and text[hashes] == "#":
                hashes += 1
            if text[hashes : hashes + 1] == '"':
                return self._raw_string(at, hashes - at, position)
        if first in "+-" and self._previous in BEFORE_SIGN:
            return self._sign(at, first, position)
        return self._symbol(at, position)

    def _skip_blanks(self) -> None:
        text = self.text
        at = self.at
        size = len(text)
        while at < size:
            character = text[at]
            if character in _BLANKS:
                at += 1
            elif character == "/" and text.startswith("//", at):
                end = text.find("\n", at)
                at = size if end < 0 else end
            elif character == "/" and text.startswith("/*", at):
                at = self._block_comment(at + 2)
            else:
                break
        self.at = at

    def _block_comment(self, at: int) -> int:
        text = self.text
        depth = 1
        while depth:
            opening = text.find("/*", at)
            closing = text.find("*/", at)
            if closing < 0:
                return len(text)
            if 0 <= opening < closing:
                depth += 1
                at = opening + 2
            else:
                depth -= 1
                at = closing + 2
        return at

    def _word(self, at: int, position: Position) -> Token:
        text = self.text
        end = at
        while end < len(text) and text[end] in _NAME:
            end += 1
        self.at = end
        word = text[at:end]
        if word in KEYWORDS:
            return Token(word, word, position)
        if word in ALL_RESERVED:
            return Token("reserved", word, position)
        if word == "_":
            return Token("_", word, position)
        if not is_identifier(word):
            raise self.error("MalformedIdentifier", f"Variable name is not proper: '{word}'", at)
        return Token("name", word, position)

    def _sign(self, at: int, sign: str, position: Position) -> Token:
        following = self.text[at + 1 : at + 2]
        if sign == "-" and following and following in _DIGITS:
            return self._number(at + 1, position, negative=True)
        if following in ("=", sign) or (sign == "-" and following == ">"):
            return self._symbol(at, position)
        self.at = at + 1
        return Token(f"unary{sign}", sign, position)

    def _symbol(self, at: int, position: Position) -> Token:
        text = self.text
        if text.startswith("!in", at) and text[at + 3 : at + 4] not in _NAME:
            self.at = at + 3
            return Token("!in", "!in", position)
        for symbol in _SYMBOLS_BY_FIRST.get(text[at], ()):
            if text.startswith(symbol, at):
                self.at = at + len(symbol)
                if symbol in RESERVED_SYMBOLS:
                    return self._reserved_symbol(symbol, at, position)
                return Token(symbol, symbol, position)
        raise self.error("UnexpectedInput", f"Unexpected '{text[at]}'", at)

    def _reserved_symbol(self, symbol: str, at: int, position: Position) -> Token:
        message = SYMBOL_TEXTS.get(symbol)
        if symbol == "#":
            rest = self.text[at + 1 :].lstrip(_BLANKS)
            if rest.startswith("{"):
                message = "'#' is not a valid symbol. Should it be '#{'?"
        if message is not None:
            raise self.error("ImproperSymbol", message, at)
        return Token("reserved", symbol, position)

    # Numbers (section 2.2)

    def _number(self, at: int, position: Position, negative: bool = False) -> Token:
        text = self.text
        start = at - 1 if negative else at
        if text[at] == "0" and text[at + 1 : at + 2] in tuple("xXoObB"):
            return self._radix_number(at, start, position, negative)
        end = self._digits(at)
        is_float = False
        if text[end : end + 1] == "." and self._dot_is_fraction(end):
            is_float = True
            end = self._digits(end + 1)
        if text[end : end + 1] in ("e", "E"):
            after = text[end + 1 : end + 2]
            if after and after in _DIGITS:
                is_float = True
                end = self._digits(end + 1)
            elif after in ("+", "-") and after:
                is_float = True
                digits = self._digits(end + 2)
                if digits == end + 2 or not text[end + 2 : digits].strip("_"):
                    raise self._bad_number(text[start:digits], start)
                end = digits
        self.at = end
        literal = text[start:end].replace("_", "")
        if not is_float:
            # a value outside i64 silently becomes a float
            if len(literal) < 4000:
                value = int(literal)
                if -(2**63) <= value < 2**63:
                    return Token("int", value, position)
            return Token("float", float(literal), position)
        return Token("float", float(literal), position)

    def _bad_number(self, digits: str, index: int) -> ParseError:
        return self.error("MalformedNumber", f"Invalid number: '{digits}'", index)

    def _digits(self, at: int) -> int:
        text = self.text
        while at < len(text) and (text[at] in _DIGITS or text[at] == "_"):
            at += 1
        return at

    def _dot_is_fraction(self, dot: int) -> bool:
        following = self.text[dot + 1 : dot + 2]
        if not following:
            return False
        if following in _DIGITS:
            return True
        return not (following.isalpha() or following in "_.")

    def _radix_number(self, at: int, start: int, position: Position, negative: bool) -> Token:
        text = self.text
        radix, allowed = {
            "x": (16, "0123456789abcdefABCDEF_"),
            "o": (8, "01234567_"),
            "b": (2, "01_"),
        }[text[at + 1].lower()]
        end = at + 2
        while end < len(text) and text[end] in allowed:
            end += 1
        self.at = end
        digits = text[at + 2 : end].replace("_", "")
        if negative:
            raise self._bad_number(text[at + 1] + digits, start)
        if not digits or len(digits.lstrip("0")) > 64 or int(digits, radix) >= 2**64:
            raise self._bad_number(digits, start)
        value = int(digits, radix)
        return Token("int", value - 2**64 if value >= 2**63 else value, position)

    # Text (section 2.3)

    def _unterminated(self, position: Position) -> ParseError:
        return ParseError("lex:UnterminatedString", "Open string is not terminated", position)

    def _checked(self, text: str, position: Position) -> str:
        limit = self._max_string
        if limit and len(text.encode("utf-8", "surrogatepass")) > limit:
            message = f"Length of string exceeds the maximum limit ({limit})"
            raise ParseError("parse:LiteralTooLarge", message, position)
        return text

    def _string(self, at: int, position: Position) -> Token:
        value = self._quoted(at, '"', position, continued=True)
        return Token("string", self._checked(value, position), position)

    def _character(self, at: int, position: Position) -> Token:
        value = self._quoted(at, "'", position, continued=False)
        if len(value) != 1:
            raise self.error("MalformedChar", f"Invalid character: '{value}'", at)
        return Token("char", value, position)

    def _quoted(self, at: int, quote: str, position: Position, continued: bool) -> str:
        text = self.text
        size = len(text)
        parts: list[str] = []
        index = at + 1
        while index < size:
            character = text[index]
            if character == quote:
                if text[index + 1 : index + 2] != quote:
                    self.at = index + 1
                    return "".join(parts)
                parts.append(quote)
                index += 2
            elif character == "\r" and text[index + 1 : index + 2] == "\n":
                index += 1
            elif character == "\n":
                break
            elif character == "\\":
                index = self._escape(index, quote, parts, position if continued else None)
            else:
                parts.append(character)
                index += 1
        raise self._unterminated(position)

    def _escape(self, index: int, quote: str, parts: list[str], opening: Position | None) -> int:
        text = self.text
        after = text[index + 1 : index + 2]
        if after == "\r" and text[index + 2 : index + 3] == "\n":
            index += 1
            after = "\n"
        if after == "\n" and opening is not None:
            index += 2
            column = 1
            while text[index : index + 1] in (" ", "\t", "\f") and column <= opening.column:
                index += 1
                column += 1
            return index
        simple = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r", quote: quote}.get(after)
        if simple is not None:
            parts.append(simple)
            return index + 2
        width = {"x": 2, "u": 4, "U": 8}.get(after)
        if width is None:
            raise self._bad_escape(index, index + 2)
        value = 0
        for offset in range(width):
            digit = text[index + 2 + offset : index + 3 + offset]
            if not digit or digit not in "0123456789abcdefABCDEF":
                raise self._bad_escape(index, index + 3 + offset)
            value = value * 16 + int(digit, 16)
        if value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
            raise self._bad_escape(index, index + 2 + width)
        parts.append(chr(value))
        return index + 2 + width

    def _bad_escape(self, start: int, end: int) -> ParseError:
        end = min(end, len(self.text))
        message = f"Invalid escape sequence: '{self.text[start:end]}'"
        return self.error("MalformedEscapeSequence", message, max(start, end - 1))

    def _skip_first_break(self) -> None:
        if self.text.startswith("\n", self.at):
            self.at += 1
        elif self.text.startswith("\r\n", self.at):
            self.at += 2

    def _template(self, position: Position) -> Token:
        """Reads template text: ``string`` when it ends here, ``template`` before a `${`."""
        text = self.text
        size = len(text)
        parts: list[str] = []
        index = self.at
        while index < size:
            character = text[index]
            if character == "`":
                if text[index + 1 : index + 2] != "`":
                    self.at = index + 1
                    value = self._checked("".join(parts), position)
                    return Token("string", value, position)
                parts.append("`")
                index += 2
            elif character == "$" and text[index + 1 : index + 2] == "{":
                self.at = index + 1
                value = self._checked("".join(parts), position)
                return Token("template", value, position)
            elif character == "\\" and text.startswith("\\${", index):
                parts.append("${")
                index += 3
            elif character == "\r" and text[index + 1 : index + 2] == "\n":
                index += 1
            else:
                parts.append(character)
                index += 1
        raise self._unterminated(position)

    def resume_template(self) -> Token:
        """Goes on with the text of a template after the `}` of an interpolation."""
        token = self._template(self.position(self.at))
        self._previous = token.kind
        return token

    def _raw_string(self, at: int, hashes: int, position: Position) -> Token:
        closing = '"' + "#" * hashes
        start = at + hashes + 1
        end = self.text.find(closing, start)
        if end < 0:
            raise self._unterminated(position)
        self.at = end + len(closing)
        return Token("string", self._checked(self.text[start:end], position), position)
