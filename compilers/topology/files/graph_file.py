"""A graph from a file: an edge list, lists of neighbours, GraphML, JSON, BookSim's anynet.

The form is known by how the text begins. A link may be listed once, or once from either end; a
second one between the same two vertices, or one from a vertex to itself, is refused with its line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from inventory.names import NAME
from inventory.problems import InputError, Problem, few, shown
from inventory.yamlfile import TextFile, read_text

COMMENTS = ("#", "%")
DOT = re.compile(r"(strict\s+)?(di)?graph\b[^{]*\{[^}]*(--|->|;)", re.IGNORECASE)
FORMS = "an edge list, GraphML, networkx's JSON or BookSim's anynet"
ROUTER = "hr_router"
"""In the type of the components of SST that are switches."""
CARRYING = ("endpoint", "endpoints")
"""Attributes of a vertex that carries hosts, or how many: polarfab's own, and those of SST."""
Entry = tuple[str, str | None, bool | None, int]
"""A vertex, the other end of a link of it or None, whether it carries hosts if said, the line."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphFile:
    """A graph as its file has it.

    names: of the N vertices; numbers from 0 to N-1 are vertex numbers, other names are numbered as
    they appear. edges: int64[E, 2]. hosts: bool[N], the vertices that carry hosts: all, where the
    file says nothing of them.
    """

    names: tuple[str, ...]
    edges: NDArray[np.int64]
    hosts: NDArray[np.bool_]

    @property
    def numbered(self) -> bool:
        """Whether the names are the vertex numbers."""
        return self.names == tuple(map(str, range(len(self.names))))


def graph_file(path: str | Path) -> GraphFile:
    """The graph in the file at `path`; it is read again when the file has changed.

    Raises:
        Unreadable: there is no such file.
        InputError: it is no graph; every problem with its line.
    """
    text = read_text(path)
    return _parsed(text.name, text.text, text.sha256)


@lru_cache(maxsize=4)
def _parsed(name: str, text: str, digest: str) -> GraphFile:
    file = TextFile(name, text, digest)
    found: dict[str, int] = {}
    links: dict[tuple[int, int], int] = {}
    hosts: dict[str, bool] = {}
    problems: list[Problem] = []
    for vertex, other, carries, line in _entries(file):
        ends = [vertex] if other is None else [vertex, other]
        for end in ends:
            if end not in found and not NAME.fullmatch(end):
                required = "names of at most 63 letters, digits and . _ -, a letter or digit first"
                problems.append(Problem(required, shown(end), file=name, line=line))
            found.setdefault(end, len(found))
        if carries is not None:
            hosts[vertex] = hosts.get(vertex, False) or carries
        if other is None:
            continue
        link = (found[vertex], found[other])
        if vertex == other:
            problems.append(
                Problem("links between two vertices", f"{vertex} twice", "", name, line)
            )
        elif link in links:
            first = f"{shown(vertex)} {shown(other)} again, first in line {links[link]}"
            problems.append(Problem("each link once", first, "remove one of them", name, line))
        links.setdefault(link, line)
    if not links:
        problems.append(Problem(FORMS, "no links", file=name))
    if problems:
        raise InputError(few(problems))
    names = tuple(found)
    order = np.arange(len(names))
    if set(names) == set(map(str, range(len(names)))):
        order, names = np.array([*map(int, names)]), tuple(map(str, range(len(names))))
    edges = np.unique(np.sort(order[np.array([*links], np.int64)], axis=1), axis=0)
    carrying = np.array([hosts.get(vertex, not hosts) for vertex in names], np.bool_)
    return GraphFile(names, edges, carrying)


def _entries(file: TextFile) -> Iterator[Entry]:
    start = file.text.lstrip()
    if start.startswith("<"):
        return _graphml(file)
    if start.startswith(("{", "[")):
        return _json(file)
    lines = [
        (line.split(), number)
        for number, line in enumerate(file.text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith(COMMENTS)
    ]
    if DOT.match(start):
        todo = "networkx makes GraphML of it"
        raise _wrong(file, 1, FORMS, "Graphviz's DOT", todo)
    if lines and lines[0][0][0] == "router":
        return _anynet(file, lines)
    if file.name.endswith(".adjlist"):
        return _adjacent(lines)
    if (first := _numbered_from(lines)) is not None:
        return _adjacent([([str(v), *words], n) for v, (words, n) in enumerate(lines[1:], first)])
    return _edge_list(file, lines)


def _numbered_from(lines: list[tuple[list[str], int]]) -> int | None:
    """The number of the first vertex of `N E` and N lines of neighbours, each link in two of them.

    From 0 in EvalNet's files (topogen/TopologyGenerator.py), from 1 in those of METIS; None for
    others. No list of edges is such a file, but where its first is from a vertex to itself.
    """
    head, rest = (lines[0][0], lines[1:]) if lines else ([], [])
    if len(head) != 2 or not all(word.isdecimal() for word in head) or len(rest) != int(head[0]):
        return None
    words = {word for neighbours, _ in rest for word in neighbours}
    both = sum(len(neighbours) for neighbours, _ in rest) == 2 * int(head[1])
    if not both or head[0] == head[1] or not all(word.isdecimal() for word in words):
        return None
    return 0 if "0" in words else 1


def _carries(said: Any) -> bool:
    """Whether a vertex has hosts, by true, false or how many."""
    return str(said).strip().lower() not in ("false", "0", "")


def _edge_list(file: TextFile, lines: list[tuple[list[str], int]]) -> Iterator[Entry]:
    """`u v` a line; networkx writes the link's data behind them, in braces."""
    for words, line in lines:
        if len(words) < 2 or not (len(words) == 2 or words[2].startswith(("{", "#"))):
            todo = "name an adjacency list FILE.adjlist" if len(words) > 2 else ""
            required = "two names, the ends of a link"
            raise _wrong(file, line, required, " ".join(words), todo)
        yield words[0], words[1], None, line


def _adjacent(lines: list[tuple[list[str], int]]) -> Iterator[Entry]:
    """A vertex and its neighbours a line."""
    for (vertex, *others), line in lines:
        yield vertex, None, None, line
        for other in others:
            yield vertex, other, None, line


def _anynet(file: TextFile, lines: list[tuple[list[str], int]]) -> Iterator[Entry]:
    """`router 0 node 0 router 1 3 …` a line: hosts and links of a router; a 3 is a latency."""
    for words, line in lines:
        kinds, names = words[::2], words[1::2]
        if any(word not in ("router", "node") for word in kinds):
            words = [w for i, w in enumerate(words) if i == 0 or not _latency(words, i)]
            kinds, names = words[::2], words[1::2]
        wrong = [word for word in kinds if word not in ("router", "node")]
        if wrong or len(kinds) != len(names) or kinds[0] != "router":
            required = "`router NUMBER`, then `node NUMBER` and `router NUMBER`"
            raise _wrong(file, line, required, " ".join(words))
        yield names[0], None, "node" in kinds, line
        for kind, other in zip(kinds[1:], names[1:], strict=True):
            if kind == "router":
                yield names[0], other, None, line


def _latency(words: list[str], place: int) -> bool:
    """Whether a word follows a number, as a link's latency does."""
    return words[place].isdecimal() and words[place - 1] not in ("router", "node")


def _json(file: TextFile) -> Iterator[Entry]:
    """Node-link or adjacency data, `polarfab export`'s own, SST's, or a list of links."""
    try:
        data: Any = json.loads(file.text)
    except (json.JSONDecodeError, RecursionError) as error:
        line = getattr(error, "lineno", 0)
        raise _wrong(file, line, "JSON", getattr(error, "msg", "too deep nesting")) from None
    data = {"edges": data} if isinstance(data, list) else data
    if "components" in data:
        yield from _components(file, data)
        return
    ids = []
    for node in _list(file, data, "vertices", "nodes"):
        name = node.get("id") if isinstance(node, dict) else node
        ids.append(_text(file, "nodes", name))
        known = node if isinstance(node, dict) else {}
        said = next((known[key] for key in CARRYING if key in known), None)
        yield ids[-1], None, _carries(said) if isinstance(said, bool | int) else None, 0
    for vertex, near in zip(ids, _list(file, data, "adjacency"), strict=False):
        for other in near if isinstance(near, list) else ():
            name = other.get("id") if isinstance(other, dict) else other
            yield vertex, _text(file, "adjacency", name), None, 0
    for number, link in enumerate(_list(file, data, "edges", "links")):
        if isinstance(link, dict):
            link = [link.get("source"), link.get("target")]
        if not isinstance(link, list) or len(link) < 2:
            key = f"edges[{number}]"
            raise InputError.of("two vertices", shown(link), "", file.name, key=key)
        u, v = (_text(file, f"edges[{number}]", end) for end in link[:2])
        yield u, v, None, 0


def _components(file: TextFile, data: dict[str, Any]) -> Iterator[Entry]:
    """What `sst --output-json` writes: routers, and links between components by their ports.

    A router that is linked to what is no router has hosts.
    """
    routers = {}
    for part in _list(file, data, "components"):
        if isinstance(part, dict) and ROUTER in str(part.get("type")):
            routers[_text(file, "components", part.get("name"))] = False
    links = []
    for number, link in enumerate(_list(file, data, "links")):
        key = f"links[{number}]"
        sides: dict[str, Any] = link if isinstance(link, dict) else {}
        ends = [end for end in (sides.get("left"), sides.get("right")) if isinstance(end, dict)]
        if len(ends) < 2:
            raise InputError.of(
                "left and right, two components", shown(link), "", file.name, key=key
            )
        u, v = (_text(file, key, end.get("component")) for end in ends)
        if u in routers and v in routers:
            links.append((u, v))
        routers |= {end: True for end in (u, v) if end in routers and {u, v} - routers.keys()}
    yield from ((name, None, carries, 0) for name, carries in routers.items())
    yield from ((u, v, None, 0) for u, v in links)


def _list(file: TextFile, data: dict[str, Any], *words: str) -> list[Any]:
    """The list of the first of these keys that there is; none where there is none."""
    for word in words:
        if word in data:
            if not isinstance(data[word], list):
                raise InputError.of("a list", shown(data[word]), "", file.name, key=word)
            found: list[Any] = data[word]
            return found
    return []


def _text(file: TextFile, key: str, name: Any) -> str:
    if type(name) not in (int, str):
        raise InputError.of("a vertex's name", shown(name), "", file.name, key=key)
    return str(name)


def _graphml(file: TextFile) -> Iterator[Entry]:
    """Nodes, edges, and a node's `endpoint`, true or false, or SST's `endpoints`, how many."""
    parser, entries = expat.ParserCreate(), list[Entry]()
    keys: dict[str, str] = {}
    place = {"node": "", "key": ""}

    def start(tag: str, given: dict[str, str]) -> None:
        line, tag = parser.CurrentLineNumber, tag.rpartition(":")[2]
        wanted = {"node": ["id"], "edge": ["source", "target"]}.get(tag, [])
        if missing := [word for word in wanted if word not in given]:
            raise _wrong(file, line, f"the attribute {missing[0]} of <{tag}>", "none")
        if tag == "key":
            keys[given.get("id", "")] = given.get("attr.name", "")
        elif tag == "data":
            place["key"] = keys.get(given.get("key", ""), "")
        elif tag == "node":
            place["node"] = given["id"]
            entries.append((given["id"], None, None, line))
        elif tag == "edge":
            entries.append((given["source"], given["target"], None, line))

    def text(data: str) -> None:
        if place["key"] in CARRYING and data.strip():
            entries.append((place["node"], None, _carries(data), parser.CurrentLineNumber))

    def end(tag: str) -> None:
        place["key"] = "" if tag.rpartition(":")[2] == "data" else place["key"]

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.buffer_text = text, True
    try:
        parser.Parse(file.text, True)
    except expat.ExpatError as error:
        given = expat.ErrorString(error.code) or "a mistake"
        raise _wrong(file, error.lineno, "GraphML", given) from None
    return iter(entries)


def _wrong(file: TextFile, line: int, required: str, given: str, todo: str = "") -> InputError:
    return InputError([Problem(required, shown(given), todo, file.name, line)])
