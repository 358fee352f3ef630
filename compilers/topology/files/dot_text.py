"""Graphviz's DOT: the nodes, edges and attributes of a graph (https://graphviz.org/doc/info/lang.html).

Subgraphs are read for what stands in them; an edge to a whole subgraph is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

TOKENS = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^\#[^\n]*)"""
    r"""|(?P<edge>--|->)|(?P<mark>[{}\[\];,=:])"""
    r"""|(?P<quoted>"(?:[^"\\]|\\.)*")"""
    r"""|(?P<name>-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)|[A-Za-z_\x80-\U0010ffff][\w]*)""",
    re.S | re.M,
)
BEGINS = re.compile(
    r"(?:\s|//[^\n]*|/\*.*?\*/|\#[^\n]*)*(?:strict\s+)?(?:di)?graph\s*"
    r'(?:"[^"]*"|[\w.-]+)?\s*\{',
    re.S | re.I,
)
NOT_NODES = ("graph", "node", "edge")


@dataclass(frozen=True, slots=True)
class DotStatement:
    """The nodes of a statement, one, or a path of edges; its attributes and line."""

    nodes: list[str]
    attributes: dict[str, str]
    line: int


class DotError(ValueError):
    """What is no DOT: what is required, what is given, and the line."""


@dataclass(slots=True)
class _Reader:
    text: str
    line: int = 1
    tokens: Iterator[tuple[str, str]] = field(init=False)
    kind: str = ""
    word: str = ""

    def __post_init__(self) -> None:
        self.tokens = self._all()
        self.next()

    def _all(self) -> Iterator[tuple[str, str]]:
        place = 0
        while place < len(self.text):
            match = TOKENS.match(self.text, place)
            if match is None:
                raise self.wrong("DOT", self.text[place : place + 20].split("\n")[0])
            kind, word = match.lastgroup or "", match[0]
            if kind == "quoted":
                kind, value = "name", re.sub(r"\\(\n|\")", _unescaped, word[1:-1])
            else:
                value = word
            if kind != "skip":
                yield kind, value
            self.line += word.count("\n")
            place = match.end()

    def next(self) -> None:
        self.kind, self.word = next(self.tokens, ("end", "the end"))

    def take(self, word: str) -> bool:
        """Whether this mark stands here; then it is passed."""
        if self.kind in ("mark", "edge") and self.word == word:
            self.next()
            return True
        return False

    def need(self, word: str) -> None:
        if not self.take(word):
            raise self.wrong(word, self.word)

    def name(self) -> str:
        if self.kind != "name":
            raise self.wrong("a name", self.word)
        word = self.word
        self.next()
        return word

    def wrong(self, required: str, given: str) -> DotError:
        return DotError(required, given, self.line)


def _unescaped(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


def dot_statements(text: str) -> Iterator[DotStatement]:
    """The statements of a graph that have nodes.

    Raises:
        DotError: it is no DOT.
    """
    reader = _Reader(text)
    while reader.kind == "name":  # strict, graph or digraph, a name
        reader.next()
    reader.need("{")
    depth = 1
    while depth:
        if reader.take("{"):
            depth += 1
        elif reader.take("}"):
            depth -= 1
            if depth and reader.kind == "edge":
                raise reader.wrong("edges between two nodes", "an edge of a subgraph")
        elif not reader.take(";"):
            yield from _statement(reader)
    if reader.kind != "end":
        raise reader.wrong("one graph", reader.word)


def _statement(reader: _Reader) -> Iterator[DotStatement]:
    line, first = reader.line, reader.name()
    if first.lower() == "subgraph":
        if reader.kind == "name":
            reader.next()
        return
    if reader.take("="):
        reader.name()
        return
    nodes = [_port_left_out(reader, first)]
    while reader.kind == "edge":
        reader.next()
        if reader.word == "{" and reader.kind == "mark":
            raise reader.wrong("edges between two nodes", "an edge to a subgraph")
        nodes.append(_port_left_out(reader, reader.name()))
    attributes: dict[str, str] = {}
    while reader.take("["):
        while not reader.take("]"):
            key = reader.name()
            attributes[key] = reader.name() if reader.take("=") else "true"
            _ = reader.take(",") or reader.take(";")
    if first.lower() not in NOT_NODES or len(nodes) > 1:
        yield DotStatement(nodes, attributes, line)


def _port_left_out(reader: _Reader, name: str) -> str:
    """A node's name, without the port and the compass point behind it."""
    while reader.take(":"):
        reader.name()
    return name
