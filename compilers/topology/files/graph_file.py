"""Reading a graph from a file: recognise its format, read it with networkx, and check the graph.

What comes in is the path of a file, what goes out a `GraphFile`. The family `graph` calls
`graph_file`. networkx reads GraphML, GML, its two kinds of JSON, edge lists and adjacency lists.
Formats that it does not know are converted into one of these: BookSim's anynet, the components of
SST, numbered adjacency lists (EvalNet, METIS), and the JSON of `polarfab export`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from inventory.names import NAME
from inventory.problems import InputError, Problem, few, shown
from inventory.yamlfile import TextFile, read_text

if TYPE_CHECKING:
    from networkx import Graph

FORMS = "an edge list, GraphML, GML, networkx's JSON or BookSim's anynet"
"""The formats that are read, in words for messages."""
GML = re.compile(r"^[ \t]*graph\s*\[", re.MULTILINE)
"""The line of GML where a graph begins: `graph [`."""


@dataclass(frozen=True, slots=True)
class RefusedFormat:
    """A format that is recognised but not read, as networkx converts it."""

    name: str
    """The name of the format, for messages."""
    begins: str
    """A regular expression for the beginning of a text of the format, in any case."""
    conversion: str
    """The call of networkx that converts a file, whose name is put in place of `{file}`."""


REFUSED_FORMATS = (
    RefusedFormat(
        "Graphviz's DOT",  # graph G { a -- b; }
        r"\s*(strict\s+)?(di)?graph\b[^{\[]*\{[^}]*(--|->|;)",
        'nx.write_graphml(nx.nx_agraph.read_dot("{file}"), "{file}.graphml")',
    ),
    RefusedFormat(
        "Matrix Market",  # %%MatrixMarket matrix coordinate pattern symmetric
        r"%%MatrixMarket\b",
        'nx.write_graphml(nx.from_scipy_sparse_array(scipy.io.mmread("{file}")), "{file}.graphml")',
    ),
    RefusedFormat(
        "Pajek",  # *Vertices 57
        r"(%.*\n|\s)*\*(network|vertices)\b",
        'nx.write_graphml(nx.read_pajek("{file}"), "{file}.graphml")',
    ),
    RefusedFormat(
        "DIMACS",  # p edge 57 224
        r"(c\b.*\n|\s)*p\s+[a-z]+\s+\d+\s+\d+\s*$",
        'nx.write_edgelist(nx.Graph(line.lstrip("ae ").split()[:2] for line in open("{file}") '
        'if line[0] in "ae123456789"), "{file}.edges", data=False)',
    ),
)
"""The formats that are recognised but not read."""
ROUTER = "hr_router"
"""A part of the type of SST's components that are switches."""
HOST_ATTRIBUTES = ("endpoint", "endpoints")
"""The attributes that say whether a vertex carries hosts, or how many: polarfab's and SST's."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphFile:
    """The graph that a file describes."""

    names: tuple[str, ...]
    """The names of the N vertices by their numbers.

    Where the names are 0 to N-1, these are the numbers; other names are numbered as they appear.
    """
    edges: NDArray[np.int64]
    """int64[E, 2]: each link once, the smaller number first."""
    hosts: NDArray[np.bool_]
    """bool[N]: the vertices that carry hosts; all of them if the file does not say."""

    @property
    def numbered(self) -> bool:
        """Whether the names are the vertex numbers."""
        return self.names == tuple(map(str, range(len(self.names))))


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a text that is not empty and no comment."""

    number: int
    """The number of the line, from 1."""
    words: tuple[str, ...]
    """Its words, without a comment at the end."""

    @property
    def text(self) -> str:
        """The words, with one blank between them."""
        return " ".join(self.words)


def graph_file(path: str | Path) -> GraphFile:
    """Read the graph in a file. A file that has not changed is parsed once.

    Raises:
        Unreadable: there is no such file.
        InputError: it describes no graph, or has problems, all of which are named.
    """
    text = read_text(path)
    return _parse(text.name, text.text, text.sha256)


@lru_cache(maxsize=4)
def _parse(name: str, text: str, digest: str) -> GraphFile:
    """Parse the text of a file, given with its name and digest."""
    graph = _read(TextFile(name, text, digest))
    if problems := _problems(graph, name):
        raise InputError(few(problems))
    names = tuple(map(str, graph))
    numbers = {vertex: number for number, vertex in enumerate(graph)}
    if set(names) == set(map(str, range(len(names)))):
        numbers = {vertex: int(vertex) for vertex in graph}
        names = tuple(map(str, range(len(names))))
    links = np.array([(numbers[u], numbers[v]) for u, v in graph.edges()], np.int64)
    hosts = _hosts(graph, numbers)
    if not hosts.any():
        required, todo = "a vertex with hosts", "mark those that have hosts, or none"
        raise InputError.of(required, "the mark of no hosts at every vertex", todo, name)
    return GraphFile(names, np.unique(np.sort(links, axis=1), axis=0), hosts)


def _hosts(graph: Graph[Any], numbers: dict[Any, int]) -> NDArray[np.bool_]:
    """Return which vertices carry hosts, bool[N], by their attributes; all if none has one.

    Args:
        graph: with the attributes `HOST_ATTRIBUTES`.
        numbers: the number of each vertex.
    """
    carries_hosts = {}
    for vertex, data in graph.nodes(data=True):
        for key in HOST_ATTRIBUTES:
            if data.get(key) is not None:
                value = str(data[key]).strip().lower()
                carries_hosts[numbers[vertex]] = value not in ("false", "0", "")
                break
    hosts = np.full(len(numbers), not carries_hosts)
    hosts[[*carries_hosts]] = [*carries_hosts.values()]
    return hosts


def _problems(graph: Graph[Any], file: str) -> list[Problem]:
    """Return what is wrong with the names and the links of a graph, [] for nothing.

    A link may be listed once from either end where the format tells the ends apart.

    Args:
        graph: as networkx read it.
        file: the name of the file, for messages.
    """
    return [*_name_problems(graph, file), *_link_problems(graph, file)]


def _name_problems(graph: Graph[Any], file: str) -> Iterator[Problem]:
    """Yield what is wrong with the names of vertices."""
    for vertex in graph:
        is_text_or_number = isinstance(vertex, int | str) and not isinstance(vertex, bool)
        if not is_text_or_number or not NAME.fullmatch(str(vertex)):
            required = "names of at most 63 letters, digits and . _ -, a letter or digit first"
            yield Problem(required, shown(vertex), file=file)
    for name, times in Counter(map(str, graph)).items():
        if times > 1:
            given = f"{shown(name)} as a number and as a text"
            yield Problem("a name for each vertex", given, "write one of them", file)
    by_lower_case: dict[str, str] = {}
    """The first name of each spelling without regard to case, by its lower case."""
    for name in dict.fromkeys(map(str, graph)):
        first = by_lower_case.setdefault(name.lower(), name)
        if first != name:
            required = "names that differ in more than case, as host names and LLDP take them"
            given = f"{shown(first)} and {shown(name)}"
            yield Problem(required, given, "rename one of them", file)


def _link_problems(graph: Graph[Any], file: str) -> Iterator[Problem]:
    """Yield what is wrong with the links."""
    for (u, v), times in Counter([*graph.edges()]).items():
        if u == v:
            yield Problem("links between two vertices", f"{shown(u)} twice", file=file)
        elif times > 1:
            given = f"{shown(u)} {shown(v)} {times} times"
            yield Problem("each link once", given, "remove the others", file)
    if not graph.number_of_edges():
        yield Problem(FORMS, "no links", file=file)


def _read(file: TextFile) -> Graph[Any]:
    """Read the graph in a text, by the format that its beginning or the file's name shows.

    Raises:
        InputError: the format is unknown, or the text is none of its format.
    """
    start = file.text.lstrip()
    for form in REFUSED_FORMATS:
        if re.match(form.begins, file.text, re.IGNORECASE | re.MULTILINE):
            conversion = form.conversion.format(file=Path(file.name).name)
            raise _line_error(file, 1, FORMS, form.name, f"networkx converts it: {conversion}")
    if start.startswith("<"):
        return _by_networkx(file, "GraphML", _graphml)
    if start.startswith(("{", "[")):
        return _by_networkx(file, "networkx's JSON", _json)
    if GML.search(file.text) or file.name.endswith(".gml"):
        return _by_networkx(file, "GML", _gml)
    return _by_lines(file)


def _by_lines(file: TextFile) -> Graph[Any]:
    """Read a format that has a vertex or a link in each line.

    Raises:
        InputError: a line has another form.
    """
    lines = []
    for number, text in enumerate(file.text.splitlines(), 1):
        words = tuple(text.partition("#")[0].split())
        if words and not words[0].startswith("%"):
            lines.append(Line(number, words))
    if lines and lines[0].words[0] in ("router", "node"):
        return _anynet(file, lines)
    if file.name.endswith(".adjlist"):
        if _has_weights(lines):
            given, todo = "links with weights", "name it FILE.edges"
            raise _line_error(
                file, lines[0].number, "a vertex and its neighbours a line", given, todo
            )
        return _neighbours([line.text for line in lines])
    if (first := _first_vertex_number(lines)) is not None:
        return _neighbours([f"{v} {line.text}" for v, line in enumerate(lines[1:], first)])
    return _edge_list(file, lines)


def _by_networkx(file: TextFile, form: str, read: Callable[[TextFile], Graph[Any]]) -> Graph[Any]:
    """Read a file with a function of networkx.

    Args:
        file: the file.
        form: the name of the format, for messages.
        read: reads it.

    Raises:
        InputError: the function raised an error, of any type, as networkx checks little itself.
    """
    try:
        return read(file)
    except InputError:
        raise
    except json.JSONDecodeError as error:
        raise _line_error(file, error.lineno, form, error.msg) from None
    except RecursionError:
        raise _line_error(file, 0, form, "too deep nesting") from None
    except KeyError as error:
        raise _line_error(file, 0, form, f"no {error}") from None
    except Exception as error:
        message = " ".join(str(error).split()) or type(error).__name__
        raise InputError.of(form, shown(message, 160), file=file.name) from None


def _graphml(file: TextFile) -> Graph[Any]:
    """Read GraphML. Groups of yEd are no vertices; vertex `n0::n1` in a group is named `n0.n1`.

    Raises:
        InputError: a group has a link.
    """
    import networkx as nx

    graph: Graph[Any] = nx.parse_graphml(file.text, force_multigraph=True)
    groups = {vertex.rpartition("::")[0] for vertex in graph if "::" in vertex} & {*graph}
    for group in sorted(groups):
        if graph.degree(group):
            required, todo = "links between vertices", "link a vertex in it"
            raise InputError.of(required, f"a link to the group {shown(group)}", todo, file.name)
    graph.remove_nodes_from(groups)
    inside = {vertex: vertex.replace("::", ".") for vertex in graph if "::" in vertex}
    return nx.relabel_nodes(graph, inside) if inside else graph


def _gml(file: TextFile) -> Graph[Any]:
    """Read GML. Vertices are named by their labels if these are different names, else by ids."""
    import networkx as nx

    graph: Graph[Any] = nx.parse_gml(file.text, label="id")
    labels = {vertex: str(data.get("label", "")) for vertex, data in graph.nodes(data=True)}
    named = all(map(NAME.fullmatch, labels.values()))
    if named and len({*labels.values()}) == len(labels):
        return nx.relabel_nodes(graph, labels)
    return graph


def _json(file: TextFile) -> Graph[Any]:
    """Read JSON: node-link or adjacency data, `polarfab export`'s own, SST's, or a list of links.

    Raises:
        InputError: an entry is no link.
    """
    import networkx as nx

    data: Any = json.loads(file.text)
    if isinstance(data, list):
        data = {"edges": data}
    if "components" in data:
        return _components(file, data)
    if "adjacency" in data:
        return nx.adjacency_graph({"multigraph": False} | data | {"directed": True})
    vertices = [
        vertex if isinstance(vertex, dict) else {"id": vertex}
        for vertex in _list(file, data, "vertices", "nodes")
    ]
    links = [
        {"source": link[0], "target": link[1]} if isinstance(link, list) and len(link) > 1 else link
        for link in _list(file, data, "edges", "links")
    ]
    for number, link in enumerate(links):
        if not (isinstance(link, dict) and {"source", "target"} <= link.keys()):
            key = f"edges[{number}]"
            raise InputError.of("two vertices", shown(link), "", file.name, key=key)
    ends = [{"source": link["source"], "target": link["target"]} for link in links]
    plain = {"directed": True, "multigraph": True, "nodes": vertices, "edges": ends}
    return nx.node_link_graph(plain, edges="edges")


def _list(file: TextFile, data: dict[str, Any], *keys: str) -> list[Any]:
    """Return the list at the first of these keys that the data has, [] without any.

    Raises:
        InputError: the value is no list.
    """
    key = next((key for key in keys if key in data), "")
    values = data.get(key, [])
    if not isinstance(values, list):
        raise InputError.of("a list", shown(values), "", file.name, key=key)
    return values


def _components(file: TextFile, data: dict[str, Any]) -> Graph[Any]:
    """Read what `sst --output-json` writes: routers, and links between components by their ports.

    A router has hosts if it is linked to a component that is no router.

    Raises:
        InputError: a link does not have two ends.
    """
    import networkx as nx

    graph: Graph[Any] = nx.MultiDiGraph()
    for part in _list(file, data, "components"):
        if ROUTER in str(part["type"]):
            graph.add_node(part["name"], endpoint=False)
    routers = {*graph}
    for number, link in enumerate(_list(file, data, "links")):
        sides = [link.get("left"), link.get("right")] if isinstance(link, dict) else []
        ends = [side["component"] for side in sides if isinstance(side, dict)]
        if len(ends) < 2:
            required, key = "left and right, two components", f"links[{number}]"
            raise InputError.of(required, shown(link), "", file.name, key=key)
        if routers.issuperset(ends):
            graph.add_edge(*ends)
        else:
            for router in routers.intersection(ends):
                graph.nodes[router]["endpoint"] = True
    return graph


def _first_vertex_number(lines: list[Line]) -> int | None:
    """Return the number of the first vertex of a numbered adjacency list, None for other files.

    Such a file has a line `N E`, and N lines of neighbours, with each link in two of them. Numbers
    start from 0 in EvalNet's files (topogen/TopologyGenerator.py), from 1 in those of METIS. An
    edge list can only look like this if its first edge joins a vertex to itself.
    """
    words = {word for line in lines for word in line.words}
    if not lines or not all(word.isdecimal() for word in words):
        return None
    head, neighbour_lines = lines[0].words, lines[1:]
    if len(head) != 2 or head[0] == head[1] or len(neighbour_lines) != int(head[0]):
        return None
    if sum(len(line.words) for line in neighbour_lines) != 2 * int(head[1]):
        return None
    return 0 if any("0" in line.words for line in neighbour_lines) else 1


def _neighbours(lines: list[str]) -> Graph[Any]:
    """Read an adjacency list: a vertex and its neighbours in each line."""
    import networkx as nx

    return nx.parse_adjlist(lines, create_using=nx.MultiDiGraph)


def _edge_list(file: TextFile, lines: list[Line]) -> Graph[Any]:
    """Read an edge list: two names in each line, and perhaps a weight, or data in braces.

    Three names in every line may also be a vertex and two neighbours: then the name of the file
    has to say which.

    Raises:
        InputError: a line is no edge, or the file can be read in both ways.
    """
    import networkx as nx

    for line in lines:
        data = line.words[2:]
        is_data = not data or data[0].startswith("{") or (len(data) == 1 and _is_number(data[0]))
        if len(line.words) < 2 or not is_data:
            todo = "name an adjacency list FILE.adjlist" if len(line.words) > 2 else ""
            if re.search("[,;]", line.text):
                todo = "separate the names by blanks, in place of commas and semicolons"
            required = "two names, the ends of a link, and a number as its weight at most"
            raise _line_error(file, line.number, required, line.text, todo)
    weighted = bool(lines) and all(len(line.words) == 3 for line in lines)
    graph = nx.parse_edgelist(
        [line.text for line in lines], create_using=nx.MultiDiGraph, data=False
    )
    if weighted and not file.name.endswith((".edges", ".edgelist")):
        lists = _neighbours([line.text for line in lines])
        firsts = {line.words[0] for line in lines}
        if len(firsts) == len(lines) and {*lists} == {*graph} and not _problems(lists, ""):
            required, todo = "a name that says the form", "name it FILE.edges or FILE.adjlist"
            given = "three vertices a line: links with weights, or two neighbours of a vertex"
            raise InputError.of(required, given, todo, file.name)
    return graph


def _has_weights(lines: list[Line]) -> bool:
    """Whether lines of three words end in numbers that are not names of vertices."""
    if not lines or any(len(line.words) != 3 for line in lines):
        return False
    ends = {word for line in lines for word in line.words[:2]}
    last = {line.words[2] for line in lines}
    if not all(map(_is_number, last)):
        return False
    if not any(map(_is_number, ends)):
        return True
    # Where vertices are numbers, a last number is a weight only if it is no whole number.
    return not all(word.isdecimal() for word in last)


def _is_number(word: str) -> bool:
    """Whether a word is a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True


def _anynet(file: TextFile, lines: list[Line]) -> Graph[Any]:
    """Read BookSim's lines: `router 0 node 0 router 1 3 …`, with hosts and links of a router.

    A third number, such as 3 here, is a latency. A line that begins with `node` lists the routers
    of a host. A file without `node` does not say which routers have hosts.

    Raises:
        InputError: a line has another form.
    """
    import networkx as nx

    graph: Graph[Any] = nx.MultiDiGraph()
    hosts = set[str]()
    for line in lines:
        pairs = _pairs(file, line)
        (kind, first), linked = pairs[0], pairs[1:]
        for other_kind, other_name in linked:
            if kind == other_kind == "router":
                graph.add_edge(first, other_name)
            elif kind != other_kind:
                hosts.add(first if kind == "router" else other_name)
        graph.add_nodes_from(name for kind, name in pairs if kind == "router")
    if hosts:
        for vertex in graph:
            graph.nodes[vertex]["endpoint"] = vertex in hosts
    return graph


def _pairs(file: TextFile, line: Line) -> list[tuple[str, str]]:
    """Return the pairs of `router` or `node` and a number in a line, without latencies.

    Raises:
        InputError: the line has another form, or links two nodes.
    """
    pairs = list[tuple[str, str]]()
    words = [*line.words]
    while len(words) > 1 and words[0] in ("router", "node"):
        pairs.append((words[0], words[1]))
        latency = len(pairs) > 1 and len(words) > 2 and words[2].isdecimal()
        words = words[3 if latency else 2 :]
    kinds = [kind for kind, _ in pairs]
    if words or (kinds[0] == "node" and "node" in kinds[1:]):
        required = "`router NUMBER` or `node NUMBER`, then those that it is linked to"
        raise _line_error(file, line.number, required, line.text)
    return pairs


def _line_error(file: TextFile, line: int, required: str, given: str, todo: str = "") -> InputError:
    """Return the error of a line; line 0 stands for the whole file."""
    return InputError([Problem(required, shown(given), todo, file.name, line)])
