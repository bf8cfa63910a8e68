"""YAML text to a node tree with places: one document, bounded in depth, size and aliases.

The tree is built from the parser's events and not by recursion, so that a hostile file costs an
error and never the stack or the memory. Nothing is typed here: a scalar keeps its source text and
whether it was written plain (chapter 10 section 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from conduit.config.diagnostics import KeyPath, printable

#: libyaml when PyYAML was built with it; the pure Python parser is some 10 times slower.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_DEPTH: Final = 64
MAX_SCALAR: Final = 65_536
#: Nodes of the document with every alias written out.
MAX_NODES: Final = 2_000_000
#: Nodes that aliases may add to those that stand in the file.
MAX_ALIASED: Final = 200_000

_STANDARD_TAGS: Final = "tag:yaml.org,2002:"


class DocumentError(Exception):
    """The text is not one usable YAML document; `line` and `column` count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


class Scalar:
    """A scalar: its text, and whether it was written without quotes (and without a block style)."""

    __slots__ = ("column", "line", "plain", "text")
    size = 1

    def __init__(self, text: str, plain: bool, line: int, column: int) -> None:
        self.text = text
        self.plain = plain
        self.line = line
        self.column = column


class Sequence:
    """A list of nodes."""

    __slots__ = ("column", "items", "line", "size")

    def __init__(self, line: int, column: int) -> None:
        self.items: list[Node] = []
        self.line = line
        self.column = column
        self.size = 0

    def add(self, node: Node) -> None:
        """Append an item."""
        self.items.append(node)


class Mapping:
    """A mapping with unique text keys, in file order; `entries` holds the key's own node too."""

    __slots__ = ("_key", "column", "entries", "line", "size")

    def __init__(self, line: int, column: int) -> None:
        self.entries: dict[str, tuple[Scalar, Node]] = {}
        self._key: Scalar | None = None
        self.line = line
        self.column = column
        self.size = 0

    @property
    def expects_value(self) -> bool:
        """True between a key and its value."""
        return self._key is not None

    def add(self, node: Node) -> None:
        """Take the next key or value; raises DocumentError for an unusable or repeated key."""
        if self._key is not None:
            self.entries[self._key.text] = (self._key, node)
            self._key = None
            return
        if not isinstance(node, Scalar):
            raise DocumentError("a key must be a plain text", node.line, node.column)
        first = self.entries.get(node.text)
        if first is not None:
            raise DocumentError(
                f"duplicate key '{printable(node.text)}' (first on line {first[0].line})",
                node.line,
                node.column,
            )
        self._key = node


Node = Scalar | Sequence | Mapping


@dataclass(frozen=True)
class Document:
    """A parsed document: its root mapping, and where a key path stands in the text."""

    __slots__ = ("root",)

    root: Mapping

    def place(self, path: KeyPath) -> tuple[int, int]:
        """Return line and column (from 1) of the value at `path`, or of its nearest ancestor.

        A key that introduces a block points at the key, so that the place reads as in the file.
        """
        node: Node = self.root
        line, column = node.line, node.column
        for step in path:
            if isinstance(node, Mapping) and isinstance(step, str) and step in node.entries:
                key, node = node.entries[step]
                line, column = (
                    (node.line, node.column)
                    if isinstance(node, Scalar) and node.text
                    else (key.line, key.column)
                )
            elif isinstance(node, Sequence) and isinstance(step, int) and step < len(node.items):
                node = node.items[step]
                line, column = node.line, node.column
            else:
                break
        return line, column

    def node(self, path: KeyPath) -> Node | None:
        """Return the node at `path`, or None."""
        node: Node = self.root
        for step in path:
            if isinstance(node, Mapping) and isinstance(step, str) and step in node.entries:
                node = node.entries[step][1]
            elif isinstance(node, Sequence) and isinstance(step, int) and step < len(node.items):
                node = node.items[step]
            else:
                return None
        return node


def parse_document(text: str) -> Document:
    """Parse the text of a configuration file.

    Raises DocumentError for a syntax error, a second document, a duplicate key, a wrong top level,
    or a document beyond the bounds of this module. An empty text is an empty mapping.
    """
    builder = _Builder()
    try:
        for event in _events(text):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error) from error
    except yaml.reader.ReaderError as error:
        line, column = _position(text, error.position)
        raise DocumentError(
            f"character U+{_code_point(error.character):04X} is not allowed in YAML", line, column
        ) from error
    except yaml.YAMLError as error:
        raise DocumentError(f"invalid YAML: {error}", 1, 1) from error
    except UnicodeEncodeError as error:
        raise DocumentError(
            "the text is not valid Unicode", *_position(text, error.start)
        ) from error
    root = builder.root
    if root is None or (isinstance(root, Scalar) and root.plain and root.text in _NULLS):
        return Document(Mapping(1, 1))
    if not isinstance(root, Mapping):
        raise DocumentError("the top level must be a mapping of keys", root.line, root.column)
    return Document(root)


_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})


def _events(text: str) -> Iterator[Event]:
    events: Iterator[Event] = yaml.parse(text, Loader=_LOADER)
    return events


class _Builder:
    """Builds nodes from events, with an explicit stack."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self._documents = 0
        self._stack: list[Sequence | Mapping] = []
        self._open: set[int] = set()
        self._anchors: dict[str, Node] = {}
        self._nodes = 0

    def take(self, event: Event) -> None:
        """Take the next event of the parser."""
        if isinstance(event, ScalarEvent):
            self._take_scalar(event)
        elif isinstance(event, (MappingStartEvent, SequenceStartEvent)):
            self._take_start(event)
        elif isinstance(event, CollectionEndEvent):
            self._take_end()
        elif isinstance(event, AliasEvent):
            self._take_alias(event)
        elif isinstance(event, DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise DocumentError("more than one YAML document in the file", *_place(event))

    def _take_scalar(self, event: ScalarEvent) -> None:
        line, column = _place(event)
        text: str = event.value
        if len(text) > MAX_SCALAR:
            raise DocumentError(
                f"a value of {len(text)} characters is too long; at most {MAX_SCALAR}", line, column
            )
        # the two parsers spell the plain style differently
        plain = event.style is None or event.style == ""
        if event.tag is not None:
            _check_tag(event.tag, line, column)
            plain = plain and event.tag not in ("!", f"{_STANDARD_TAGS}str")
        node = Scalar(text, plain, line, column)
        self._anchor(event.anchor, node)
        self._add(node)

    def _take_start(self, event: MappingStartEvent | SequenceStartEvent) -> None:
        line, column = _place(event)
        if len(self._stack) >= MAX_DEPTH:
            raise DocumentError(f"nested deeper than {MAX_DEPTH} levels", line, column)
        if event.tag is not None:
            _check_tag(event.tag, line, column)
        node = (
            Mapping(line, column)
            if isinstance(event, MappingStartEvent)
            else Sequence(line, column)
        )
        parent = self._stack[-1] if self._stack else None
        if isinstance(parent, Mapping) and not parent.expects_value:
            raise DocumentError("a key must be a plain text", line, column)
        self._anchor(event.anchor, node)
        self._stack.append(node)
        self._open.add(id(node))

    def _take_end(self) -> None:
        node = self._stack.pop()
        self._open.discard(id(node))
        children = (
            [child for _, child in node.entries.values()]
            if isinstance(node, Mapping)
            else node.items
        )
        node.size = 1 + sum(child.size for child in children)
        self._add(node)

    def _take_alias(self, event: AliasEvent) -> None:
        line, column = _place(event)
        name = event.anchor or ""
        node = self._anchors.get(name)
        if node is None:
            raise DocumentError(f"unknown alias '*{printable(name)}'", line, column)
        if id(node) in self._open:
            raise DocumentError(f"alias '*{printable(name)}' contains itself", line, column)
        self._add(node, alias_place=(line, column))

    def _anchor(self, name: str | None, node: Node) -> None:
        if name is not None:
            self._anchors[name] = node

    def _add(self, node: Node, alias_place: tuple[int, int] | None = None) -> None:
        if alias_place is None:
            self._nodes += 1
            if self._nodes > MAX_NODES:
                raise DocumentError(f"more than {MAX_NODES} values", node.line, node.column)
        elif node.size > MAX_ALIASED:
            raise DocumentError("aliases expand to too many values", *alias_place)
        if not self._stack:
            self.root = node
            if node.size > min(MAX_NODES, self._nodes + MAX_ALIASED):
                raise DocumentError("aliases expand to too many values", node.line, node.column)
            return
        self._stack[-1].add(node)


def _check_tag(tag: str, line: int, column: int) -> None:
    if not tag.startswith(_STANDARD_TAGS) and tag != "!":
        raise DocumentError(f"the tag '{printable(tag)}' is not supported", line, column)


def _place(event: Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)


def _syntax_error(error: yaml.MarkedYAMLError) -> DocumentError:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    message = f"invalid YAML: {error.problem or error.context}"
    if error.context and error.problem:
        message += f" ({error.context}"
        if error.context_mark is not None:
            message += f" that begins on line {error.context_mark.line + 1}"
        message += ")"
    return DocumentError(message, line, column)


def _position(text: str, index: int) -> tuple[int, int]:
    before = text[: max(0, index)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _code_point(character: str | bytes | int) -> int:
    if isinstance(character, int):
        return character
    return ord(character[:1]) if character else 0
