"""Check node types, graph, family, ports and cables of a build: do these values fit each other?

Each function looks at one kind of values, and yields wrong values as `UnsoundValues`. It checks,
for example, that a port has one use, or that both ends of a cable agree. No packets are followed.
`build_soundness` calls the functions in order; `table_soundness` checks the tables.

The argument `port_use` says what each port of each switch is used for, and which link is behind it
(`PortUse`). It is asked about some switches at a time (`PortUse.part`), to keep arrays small.

In the findings, s is a switch, k a link of it, and e an entry of `Graph.targets`. What a finding is
about comes first, then what is required, then what the build has.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import ABSENT, PortUse
from compilers.proof.soundness.unsound import UnsoundValues, unsound_where
from compilers.tables.build import Build
from compilers.topology.adjacency import Graph
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import whole_topology
from inventory.problems import Finding, InputError


def check_node_types(build: Build) -> Iterator[UnsoundValues]:
    """Nodes whose type does not exist, and types with two ports of one name."""
    wiring = build.wiring
    names, types = wiring.type_names, wiring.port_names

    def unknown_type(s: int) -> Finding:
        """The finding for a switch whose type does not exist."""
        given = f"type {wiring.node_type[s]} of {len(names)}"
        return Finding((wiring.names[s], "node_type"), "a node type that is there", given)

    def repeated_name(t: int) -> Finding:
        """The finding for a type with two ports of one name."""
        path = ("node_types", t, "ports")
        return Finding(path, "a list of names that differ for each node type", "another")

    yield from unsound_where(wiring.node_type >= min(len(names), len(types)), unknown_type)
    has_distinct = [len(set(ports)) == len(ports) and all(ports) for ports in types]
    # Names without a list of ports, and lists without a name, are wrong too.
    has_distinct += [False] * abs(len(names) - len(types))
    yield from unsound_where(~np.array(has_distinct, np.bool_), repeated_name)


def check_graph(build: Build) -> Iterator[UnsoundValues]:
    """Lists of neighbours that are no simple undirected graph, or differ from the cables."""
    g, wiring = build.topology.graph, build.wiring
    ascends = bool((np.diff(g.offsets) >= 0).all())
    covers_targets = g.offsets[0] == 0 and g.offsets[-1] == len(g.targets)
    if not (covers_targets and ascends and _is_graph(g)):
        yield UnsoundValues.one("graph", "lists of neighbours that name each other", "others")
        return
    # int[S, K], the neighbours in the graph, with as many columns as `Wiring.far`.
    neighbours, most_links = g.padded(), wiring.far.shape[1]
    missing = max(most_links - neighbours.shape[1], 0)
    neighbours = np.pad(neighbours, ((0, 0), (0, missing)), constant_values=-1)[:, :most_links]
    yield from unsound_where(
        wiring.far != neighbours,
        lambda s, k: Finding(
            (wiring.names[s], "link", k),
            f"the cable to {_name(build, int(neighbours[s, k]))}",
            f"one to {_name(build, int(wiring.far[s, k]))}",
        ),
    )


def _is_graph(g: Graph) -> bool:
    """Whether lists of neighbours ascend, have no loops, and name each other.

    An entry of a list is an arc from the vertex of the list, its tail, to a target.
    """
    for block, tails, reverse in g.reverse_blocks():
        targets = g.targets[block]
        ascending = (tails[1:] > tails[:-1]) | (targets[1:] > targets[:-1])
        # `reverse`: where the opposite arc has to be; it must lie in the list of the target.
        inside = reverse < g.offsets[targets + 1]
        mutual = inside & (g.targets[np.where(inside, reverse, 0)] == tails)
        if not (ascending.all() and mutual.all() and (targets != tails).all()):
            return False
    return True


def check_family(build: Build) -> Iterator[UnsoundValues]:
    """A topology that differs from what its family and parameters make.

    Links and nodes may be missing. Each check needs those before it, so the first fault may end
    them.
    """
    t = build.topology
    try:
        whole = whole_topology(t)  # as the family makes it, with nothing missing
    except (InputError, KeyError, TypeError, ValueError):
        yield UnsoundValues.one("topology", "a family and its parameters", t.title())
        return
    title = whole.title()
    if t.graph.order != whole.graph.order:
        vertices = f"the {whole.graph.order:,} vertices of {title}"
        yield UnsoundValues.one("topology", vertices, f"{t.graph.order:,}")
        return
    for field in ("family", "kinds", "hierarchy"):
        required, given = getattr(whole, field), getattr(t, field)
        if given != required:
            yield UnsoundValues.one(f"topology.{field}", f"{required}", f"{given}")
    missing = t.graph.size < whole.graph.size
    if t.diameter < whole.diameter or (t.diameter > whole.diameter and not missing):
        yield UnsoundValues.one("topology.diameter", f"{whole.diameter}", f"{t.diameter}")
    yield from unsound_where(~_edges_in(t, whole), lambda e: _no_link(build, e))
    arrays = ("kind", "coordinates", "endpoints")
    if any(getattr(t, array).shape != getattr(whole, array).shape for array in arrays):
        yield UnsoundValues.one("topology", f"as many coordinates as {title} has", "others")
        return
    wrong = (t.kind != whole.kind) | (t.coordinates != whole.coordinates).any(axis=1)
    wrong |= t.endpoints != (whole.endpoints & t.present)
    yield from unsound_where(
        wrong,
        lambda s: Finding((build.wiring.names[s], "vertex"), f"vertex {s} of {title}", "another"),
    )


def _edges_in(topology: Topology, whole: Topology) -> NDArray[np.bool_]:
    """bool[n]: whether each entry of `Graph.targets` is an edge of the whole topology, too."""
    graph, full = topology.graph, whole.graph
    if np.array_equal(graph.offsets, full.offsets) and np.array_equal(graph.targets, full.targets):
        return np.ones(len(graph.targets), np.bool_)
    edges, full_edges = (g.tails() * np.int64(g.order) + g.targets for g in (graph, full))
    return np.isin(edges, full_edges, assume_unique=True)


def _no_link(build: Build, entry: int) -> Finding:
    """The finding for an entry of `Graph.targets` that is no edge of the family's graph."""
    g = build.topology.graph
    ends = f"{_name(build, g.tails()[entry])} and {_name(build, g.targets[entry])}"
    return Finding(("graph",), f"a link of {build.topology.title()}", f"one of {ends}")


def check_ports(build: Build, port_use: PortUse) -> Iterator[UnsoundValues]:
    """Ports that their node type does not have, or that have two cables; too few or many hosts.

    A link or a host needs a port that its switch has. Where there is no link or host, there has to
    be no port (0).
    """
    wiring, t = build.wiring, build.topology
    hosts = np.broadcast_to(t.endpoints[:, None], wiring.host_port.shape)
    if build.hardware:
        hosts = hosts & ~build.hardware.host_broken
    for key, port, in_use in (
        ("link", wiring.port, wiring.far >= 0),
        ("host", wiring.host_port, hosts),
    ):
        for block in port_use.blocks():
            yield from unsound_where(
                in_use[block] & (port_use.part(block).purposes(port[block]) == ABSENT),
                lambda s, k, key=key, port=port: Finding(
                    (wiring.names[s], key, k),
                    f"one of its {len(wiring.port_names[wiring.node_type[s]])} ports",
                    port_use.words(s, int(port[s, k])),
                ),
                block.start,
            )
        yield from unsound_where(
            ~in_use & (port != 0),
            lambda s, k, key=key, port=port: Finding(
                (wiring.names[s], key, k), "no port", port_use.words(s, int(port[s, k]))
            ),
        )
    for block in port_use.blocks():
        yield from _shared_ports(build, block)


def _shared_ports(build: Build, block: slice) -> Iterator[UnsoundValues]:
    """Ports of a block of switches that have two cables."""
    wiring = build.wiring
    ports = np.concatenate((wiring.port[block], wiring.host_port[block]), axis=1)
    columns_by_port = np.argsort(ports, axis=1, kind="stable")
    ascending = np.take_along_axis(ports, columns_by_port, axis=1)
    is_second = np.zeros(ports.shape, np.bool_)
    # A second use of a port follows the first one in sorted order. 0 is no port.
    equals_last = (ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] != 0)
    np.put_along_axis(is_second, columns_by_port[:, 1:], equals_last, axis=1)
    yield from unsound_where(
        is_second,
        lambda s, k: Finding(
            (wiring.names[s], "port", int(ports[s - block.start, k])),
            "one cable to a port",
            "a second one",
        ),
        block.start,
    )


def check_cables(build: Build, port_use: PortUse) -> Iterator[UnsoundValues]:
    """Cables whose far end does not name them, and ports at the far end of no cable."""
    wiring = build.wiring
    for block in port_use.blocks():
        cabled, far_port = wiring.far[block] >= 0, wiring.far_port[block]
        far = np.where(cabled, wiring.far[block], 0)
        # The number that the same cable has among the links of its far end, int32[n, K], and what
        # the far end says of this cable: the switch and the port at the near end.
        far_link = port_use.link_at(far, far_port)
        near = np.where(far_link >= 0, wiring.far[far, far_link], -1)
        near_port = np.where(far_link >= 0, wiring.far_port[far, far_link], -1)
        switch = np.arange(len(wiring.far))[block, None]
        good = (far_link >= 0) & (near == switch) & (near_port == wiring.port[block])
        wrong = np.where(cabled, ~good, far_port != 0)
        yield from unsound_where(wrong, partial(_no_end, build), block.start)


def _no_end(build: Build, s: int, k: int) -> Finding:
    """The finding for link k of a switch, whose far end does not name it."""
    wiring = build.wiring
    far = _name(build, int(wiring.far[s, k]))
    return Finding(
        (wiring.names[s], "link", k),
        f"the port of {far} that is cabled to port {wiring.port[s, k]}",
        f"port {wiring.far_port[s, k]}",
    )


def _name(build: Build, vertex: int) -> str:
    """The name of a vertex; -1 is no switch."""
    return build.wiring.names[vertex] if vertex >= 0 else "no switch"
