"""The wiring of a build, checked by itself: types, ports, both ends of every cable, the graph."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import ABSENT, PortUse
from compilers.proof.soundness.unsound import Unsound, where
from compilers.tables.build import Build
from compilers.topology.adjacency import Graph
from compilers.topology.families import GRAPH_FAMILY, build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.random_growth import regrown, steps_of
from compilers.topology.replicated_clusters import added_clusters, expand
from inventory.problems import Finding, InputError


def node_types(build: Build) -> Iterator[Unsound]:
    """Nodes of a type that is not there, and types with two ports of one name."""
    w = build.wiring
    names, types = w.type_names, w.port_names

    def unknown(s: int) -> Finding:
        given = f"type {w.node_type[s]} of {len(names)}"
        return Finding((w.names[s], "node_type"), "a node type that is there", given)

    def alike(t: int) -> Finding:
        path = ("node_types", t, "ports")
        return Finding(path, "a list of names that differ for each node type", "another")

    yield from where(w.node_type >= min(len(names), len(types)), unknown)
    distinct = [len(set(ports)) == len(ports) and all(ports) for ports in types]
    lists = [*distinct, *[False] * abs(len(names) - len(types))]
    yield from where(~np.array(lists, np.bool_), alike)


def graph(build: Build) -> Iterator[Unsound]:
    """Lists of neighbours that make no graph, or not the one that is cabled."""
    g, w = build.topology.graph, build.wiring
    steps = np.diff(g.offsets)
    whole = bool(g.offsets[0] == 0 and g.offsets[-1] == len(g.targets) and (steps >= 0).all())
    if not whole or not _is_graph(g):
        yield Unsound.one("graph", "lists of neighbours that name each other", "others")
        return
    far = g.padded()
    more = w.far.shape[1] - far.shape[1]
    far = np.pad(far, ((0, 0), (0, max(more, 0))), constant_values=-1)[:, : w.far.shape[1]]
    yield from where(
        w.far != far,
        lambda s, k: Finding(
            (w.names[s], "link", k),
            f"the cable to {_name(build, int(far[s, k]))}",
            f"one to {_name(build, int(w.far[s, k]))}",
        ),
    )


def _is_graph(g: Graph) -> bool:
    for some, tails, back in g.reverse_blocks():
        targets = g.targets[some]
        ascending = (tails[1:] > tails[:-1]) | (targets[1:] > targets[:-1])
        inside = back < g.offsets[targets + 1]
        mutual = inside & (g.targets[np.where(inside, back, 0)] == tails)
        if not (ascending.all() and mutual.all() and (targets != tails).all()):
            return False
    return True


def family(build: Build) -> Iterator[Unsound]:
    """A topology that its family and parameters do not make; links and nodes may be missing."""
    t = build.topology
    try:
        ours = _whole(t)
    except (InputError, KeyError, TypeError, ValueError):
        yield Unsound.one("topology", "a family and its parameters", t.title())
        return
    if t.graph.order != ours.graph.order:
        given = f"{t.graph.order:,}"
        yield Unsound.one("topology", f"the {ours.graph.order:,} vertices of {ours.title()}", given)
        return
    for word in ("family", "kinds", "hierarchy"):
        if getattr(t, word) != getattr(ours, word):
            yield Unsound.one(f"topology.{word}", f"{getattr(ours, word)}", f"{getattr(t, word)}")
    missing = t.graph.size < ours.graph.size
    if t.diameter < ours.diameter or (t.diameter > ours.diameter and not missing):
        yield Unsound.one("topology.diameter", f"{ours.diameter}", f"{t.diameter}")
    yield from where(~_edges_in(t, ours), lambda e: _no_link(build, e))
    words = ("kind", "coordinates", "endpoints")
    if any(getattr(t, word).shape != getattr(ours, word).shape for word in words):
        yield Unsound.one("topology", f"as many coordinates as {ours.title()} has", "others")
        return
    wrong = (t.kind != ours.kind) | (t.coordinates != ours.coordinates).any(axis=1)
    wrong |= t.endpoints != (ours.endpoints & t.present)
    title = ours.title()
    yield from where(
        wrong,
        lambda s: Finding((build.wiring.names[s], "vertex"), f"vertex {s} of {title}", "another"),
    )


def _whole(topology: Topology) -> Topology:
    """What the parameters of a topology make, without anything missing."""
    family = topology.grown_from or topology.family
    if family == GRAPH_FAMILY:  # its definition is the graph that is stored
        return topology
    if steps := steps_of(topology):
        given = {k: v for k, v in topology.parameters.items() if k != "switches"}
        return regrown(build_topology(family, given), steps)
    method, count = added_clusters(topology)
    if not method:
        return build_topology(topology.family, topology.parameters)
    first = build_topology(family, {"q": topology.parameters["q"]})
    return expand(first, method, count).topology


def _edges_in(topology: Topology, whole: Topology) -> NDArray[np.bool_]:
    one, other = topology.graph, whole.graph
    if np.array_equal(one.offsets, other.offsets) and np.array_equal(one.targets, other.targets):
        return np.ones(len(one.targets), np.bool_)
    keys = [g.tails() * np.int64(g.order) + g.targets for g in (topology.graph, whole.graph)]
    return np.isin(keys[0], keys[1], assume_unique=True)


def _no_link(build: Build, entry: int) -> Finding:
    g = build.topology.graph
    ends = f"{_name(build, g.tails()[entry])} and {_name(build, g.targets[entry])}"
    return Finding(("graph",), f"a link of {build.topology.title()}", f"one of {ends}")


def ports(build: Build, use: PortUse) -> Iterator[Unsound]:
    """Ports that a type has not, that have two cables, and hosts that are too few or too many."""
    w, t = build.wiring, build.topology
    hosts = np.broadcast_to(t.endpoints[:, None], w.host_port.shape)
    if build.hardware:
        hosts = hosts & ~build.hardware.host_broken
    for word, port, there in (("link", w.port, w.far >= 0), ("host", w.host_port, hosts)):
        for some in use.blocks():
            yield from where(
                there[some] & (use.part(some).at(port[some]) == ABSENT),
                lambda s, k, word=word, port=port: Finding(
                    (w.names[s], word, k),
                    f"one of its {len(w.port_names[w.node_type[s]])} ports",
                    use.words(s, int(port[s, k])),
                ),
                some.start,
            )
        yield from where(
            ~there & (port != 0),
            lambda s, k, word=word, port=port: Finding(
                (w.names[s], word, k), "no port", use.words(s, int(port[s, k]))
            ),
        )
    for some in use.blocks():
        yield from _shared_ports(build, some)


def _shared_ports(build: Build, some: slice) -> Iterator[Unsound]:
    """Ports of some switches that have two cables."""
    w = build.wiring
    taken = np.concatenate((w.port[some], w.host_port[some]), axis=1)
    order = np.argsort(taken, axis=1, kind="stable")
    ranked = np.take_along_axis(taken, order, axis=1)
    again = np.zeros(taken.shape, np.bool_)
    twice = (ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] != 0)
    np.put_along_axis(again, order[:, 1:], twice, axis=1)
    yield from where(
        again,
        lambda s, k: Finding(
            (w.names[s], "port", int(taken[s - some.start, k])),
            "one cable to a port",
            "a second one",
        ),
        some.start,
    )


def cables(build: Build, use: PortUse) -> Iterator[Unsound]:
    """Cables whose other end is not where they say."""
    w = build.wiring
    for some in use.blocks():
        there, far_port = w.far[some] >= 0, w.far_port[some]
        far = np.where(there, w.far[some], 0)
        link = use.link[far, use.known(far_port)]
        back = np.where(link >= 0, w.far[far, link], -1)
        port = np.where(link >= 0, w.far_port[far, link], -1)
        own = np.arange(len(w.far))[some, None]
        good = (link >= 0) & (back == own) & (port == w.port[some])
        yield from where(np.where(there, ~good, far_port != 0), partial(_no_end, build), some.start)


def _no_end(build: Build, s: int, k: int) -> Finding:
    w = build.wiring
    return Finding(
        (w.names[s], "link", k),
        f"the port of {_name(build, int(w.far[s, k]))} that is cabled to port {w.port[s, k]}",
        f"port {w.far_port[s, k]}",
    )


def _name(build: Build, vertex: int) -> str:
    return build.wiring.names[vertex] if vertex >= 0 else "no switch"
