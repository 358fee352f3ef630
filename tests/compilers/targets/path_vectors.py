"""BGP as routers do it: each chooses a path of those that its neighbours announce, by its files."""

import re

import networkx as nx

FIRST = 4200000000
"""The AS number of switch 0."""
AGAIN = re.compile(r'access-list again (?:seq \d+ )?permit "?(\^.*?)(?:"| any)?$', re.M)


class PathVectors:
    """The routers of a rendered fabric whose prefixes are numbers of switches.

    folder: of their files; None: no path over another neighbour is last among equals.
    """

    def __init__(self, build, folder):
        self.graph = nx.Graph(build.topology.graph.edges().tolist())
        self.most = 2 * build.topology.diameter + 2
        self.again = {}
        for v, name in enumerate(build.wiring.names if folder else ()):
            text = "".join(path.read_text() for path in (folder / name).iterdir())
            permitted = "|".join(AGAIN.findall(text)).replace("_", "( |$)")
            self.again[v] = re.compile(permitted)

    def choice(self, v, to, announced, longer=()):
        """The path that a router takes: shortest, least metric, lowest router id; None without any.

        announced: {(neighbour, destination): path}, from it on. longer: whose paths have 9 systems
        more but to itself.
        """
        found = []
        for u in self.graph[v]:
            path = announced.get((u, to))
            if path and v not in path and len(path) <= self.most:
                last = v in self.again and self.again[v].match(self.systems(path))
                more = 9 * (u in longer and u != to)
                found.append((len(path) + more, 1 + bool(last), u, path))
        return (v, *min(found)[3]) if found else None

    def systems(self, path):
        return " ".join(str(FIRST + each) for each in path)

    def converged(self, closed=frozenset()):
        """{(switch, destination): path}, with links closed, a frozenset of both ends each."""
        paths, after = {}, {(v, v): (v,) for v in self.graph}
        while after != paths:
            paths, after = after, {(v, v): (v,) for v in self.graph}
            for v in self.graph:
                heard = {at: p for at, p in paths.items() if {v, at[0]} not in closed}
                for to in self.graph:
                    if v != to and (path := self.choice(v, to, heard)):
                        after[v, to] = path
        return paths
