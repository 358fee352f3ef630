"""Check the values of a build one by one: types, graph, ports, cables, prefixes, rows and classes.

Each function looks at one kind of values, and yields wrong values as `Unsound`. The functions
follow no packets, and do not look at `Forwarding`. They check, for example, that a port has one
use, that both ends of a cable agree, and that rows name classes that exist. `build_soundness` calls
them in order.

The argument `use` (`PortUse`) says what each port of each switch is used for, and which link is
behind it. It is asked about some switches at a time (`use.part`), to keep arrays small.

In the findings, s is a switch, k a class or a link of it, and n a place in a list of ports. What a
finding is about comes first, then what is required, then what the build has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.link_sets import has, packed_alternates
from compilers.proof.soundness.port_use import ABSENT, FABRIC, Ports, PortUse
from compilers.proof.soundness.unsound import Unsound, repeated, unsound_where
from compilers.tables.build import Build
from compilers.tables.computed_array import blocks_of
from compilers.tables.intermediate_form import local, no_route
from compilers.tables.packed_alternates import (
    AlternateLinks,
    AlternatePorts,
    AlternateWeights,
    set_bits,
)
from compilers.tables.star_rows import StarPrefixes
from compilers.topology.adjacency import Graph
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import whole_topology
from inventory.problems import Finding, InputError


def node_types(build: Build) -> Iterator[Unsound]:
    """Nodes whose type does not exist, and types with two ports of one name."""
    wiring = build.wiring
    names, types = wiring.type_names, wiring.port_names

    def unknown_type(s: int) -> Finding:
        """The finding for a switch whose type does not exist."""
        number = f"type {wiring.node_type[s]} of {len(names)}"
        return Finding((wiring.names[s], "node_type"), "a node type that is there", number)

    def repeated_name(t: int) -> Finding:
        """The finding for a type with two ports of one name."""
        path = ("node_types", t, "ports")
        return Finding(path, "a list of names that differ for each node type", "another")

    yield from unsound_where(wiring.node_type >= min(len(names), len(types)), unknown_type)
    has_distinct = [len(set(ports)) == len(ports) and all(ports) for ports in types]
    # Names without a list of ports, and lists without a name, are wrong too.
    has_distinct += [False] * abs(len(names) - len(types))
    yield from unsound_where(~np.array(has_distinct, np.bool_), repeated_name)


def graph(build: Build) -> Iterator[Unsound]:
    """Lists of neighbours that are no undirected graph, or differ from the cables."""
    g, wiring = build.topology.graph, build.wiring
    ascends = bool((np.diff(g.offsets) >= 0).all())
    covers_targets = g.offsets[0] == 0 and g.offsets[-1] == len(g.targets)
    if not (covers_targets and ascends and _is_graph(g)):
        yield Unsound.one("graph", "lists of neighbours that name each other", "others")
        return
    # int[S, K], the neighbours in the graph, with as many columns as `Wiring.far`.
    far, most_links = g.padded(), wiring.far.shape[1]
    missing = max(most_links - far.shape[1], 0)
    far = np.pad(far, ((0, 0), (0, missing)), constant_values=-1)[:, :most_links]
    yield from unsound_where(
        wiring.far != far,
        lambda s, k: Finding(
            (wiring.names[s], "link", k),
            f"the cable to {_name(build, int(far[s, k]))}",
            f"one to {_name(build, int(wiring.far[s, k]))}",
        ),
    )


def _is_graph(g: Graph) -> bool:
    """Whether lists of neighbours ascend, have no loops, and name each other."""
    for block, tails, back in g.reverse_blocks():
        targets = g.targets[block]
        ascending = (tails[1:] > tails[:-1]) | (targets[1:] > targets[:-1])
        inside = back < g.offsets[targets + 1]
        mutual = inside & (g.targets[np.where(inside, back, 0)] == tails)
        if not (ascending.all() and mutual.all() and (targets != tails).all()):
            return False
    return True


def family(build: Build) -> Iterator[Unsound]:
    """A topology that differs from what its family and parameters make.

    Links and nodes may be missing.
    """
    t = build.topology
    try:
        whole = whole_topology(t)
    except (InputError, KeyError, TypeError, ValueError):
        yield Unsound.one("topology", "a family and its parameters", t.title())
        return
    title = whole.title()
    if t.graph.order != whole.graph.order:
        vertices = f"the {whole.graph.order:,} vertices of {title}"
        yield Unsound.one("topology", vertices, f"{t.graph.order:,}")
        return
    for field in ("family", "kinds", "hierarchy"):
        required, given = getattr(whole, field), getattr(t, field)
        if given != required:
            yield Unsound.one(f"topology.{field}", f"{required}", f"{given}")
    missing = t.graph.size < whole.graph.size
    if t.diameter < whole.diameter or (t.diameter > whole.diameter and not missing):
        yield Unsound.one("topology.diameter", f"{whole.diameter}", f"{t.diameter}")
    yield from unsound_where(~_edges_in(t, whole), lambda e: _no_link(build, e))
    arrays = ("kind", "coordinates", "endpoints")
    if any(getattr(t, array).shape != getattr(whole, array).shape for array in arrays):
        yield Unsound.one("topology", f"as many coordinates as {title} has", "others")
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


def ports(build: Build, use: PortUse) -> Iterator[Unsound]:
    """Ports that their node type does not have, or that have two cables; too few or many hosts."""
    wiring, t = build.wiring, build.topology
    hosts = np.broadcast_to(t.endpoints[:, None], wiring.host_port.shape)
    if build.hardware:
        hosts = hosts & ~build.hardware.host_broken
    for key, port, in_use in (
        ("link", wiring.port, wiring.far >= 0),
        ("host", wiring.host_port, hosts),
    ):
        for block in use.blocks():
            yield from unsound_where(
                in_use[block] & (use.part(block).purposes(port[block]) == ABSENT),
                lambda s, k, key=key, port=port: Finding(
                    (wiring.names[s], key, k),
                    f"one of its {len(wiring.port_names[wiring.node_type[s]])} ports",
                    use.words(s, int(port[s, k])),
                ),
                block.start,
            )
        yield from unsound_where(
            ~in_use & (port != 0),
            lambda s, k, key=key, port=port: Finding(
                (wiring.names[s], key, k), "no port", use.words(s, int(port[s, k]))
            ),
        )
    for block in use.blocks():
        yield from _shared_ports(build, block)


def _shared_ports(build: Build, block: slice) -> Iterator[Unsound]:
    """Ports of some switches that have two cables."""
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


def cables(build: Build, use: PortUse) -> Iterator[Unsound]:
    """Cables whose far end does not name them, and ports at the far end of no cable."""
    wiring = build.wiring
    for block in use.blocks():
        cabled, far_port = wiring.far[block] >= 0, wiring.far_port[block]
        far = np.where(cabled, wiring.far[block], 0)
        # The number that the same cable has among the links of its far end, int32[n, K], and what
        # the far end says of this cable: the switch and the port at the near end.
        far_link = use.link_at(far, far_port)
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


def prefixes(build: Build) -> Iterator[Unsound]:
    """Prefix numbers that do not ascend or do not exist, and aggregates of other supernodes."""
    routes, supernode_size = build.tables.routes, build.topology.hierarchy
    switches = len(routes.egress)
    end = switches + _count_aggregates(build)  # the first number that is no prefix
    prefix = routes.prefix
    if isinstance(prefix, StarPrefixes) and (np.diff(prefix.packed.around, axis=1) <= 0).any():
        yield Unsound.one("routes.prefix", "supernodes around each that ascend", "others")
        return
    # Groups of switches that have fewer prefixes than others are filled up with `end`.
    for first, rows in blocks_of(prefix):
        wrong = (rows < 0) | (rows > end)
        # A number is wrong that does not ascend, unless it fills up.
        wrong[:, 1:] |= (rows[:, 1:] <= rows[:, :-1]) & (rows[:, 1:] < end)
        yield from unsound_where(
            wrong,
            lambda g, r: Finding(
                ("routes", "prefix", g, r),
                f"ascending numbers below {end}",
                f"{prefix[g, r]}",
            ),
            first,
        )
    # int64[S], the number of the aggregate of each switch's supernode.
    supernode = switches + np.arange(switches) // supernode_size
    covered = (routes.aggregate == supernode) & (supernode_size > 1)
    yield from unsound_where(
        (routes.aggregate != -1) & ~covered,
        lambda s: Finding(
            (build.wiring.names[s], "aggregate"),
            f"{supernode[s]}, or -1" if supernode_size > 1 else "-1",
            f"{routes.aggregate[s]}",
        ),
    )
    if len(prefix) == 0 or switches % len(prefix):
        yield Unsound.one("routes.prefix", f"sets that divide {switches}", f"{len(prefix)}")


def _count_aggregates(build: Build) -> int:
    """How many aggregate prefixes there are: one for each supernode."""
    supernode_size = build.topology.hierarchy
    return build.tables.switches // supernode_size if supernode_size > 1 else 0


def rows(build: Build) -> Iterator[Unsound]:
    """Rows that name no class, lead to no switch, or deliver at a wrong switch."""
    routes, port = build.tables.routes, build.tables.classes.port
    egress, switches = routes.egress, len(routes.egress)
    delivery, nothing = local(egress), no_route(egress)
    # By switch and value of `Routes.egress`, of which delivery is the largest.
    allowed = np.zeros((switches, delivery + 1), np.bool_)
    classes = min(port.shape[1], nothing)
    allowed[:, :classes] = port[:, :classes] > 0
    allowed[:, nothing] = True
    endpoints = np.append(build.topology.endpoints, np.ones(_count_aggregates(build) + 1, np.bool_))
    endpoints[-1] = False  # for the number that fills rows, which is no prefix
    for s, row in enumerate(egress):
        if s % routes.group_size == 0:  # the switches of a group have the same prefixes
            prefix = routes.prefix[s // routes.group_size]
            has_hosts = endpoints[np.minimum(prefix, len(endpoints) - 1)]
        wrong = ~allowed[s].take(row)
        wrong |= ~has_hosts & (row != nothing)
        is_own = has_hosts & (prefix == s)
        wrong[is_own] = row[is_own] != delivery
        if wrong.any():
            switch = _SwitchRows(build.wiring.names[s], prefix, is_own, has_hosts, row)
            yield from unsound_where(wrong, switch.wrong_row)


@dataclass(frozen=True, slots=True, eq=False)
class _SwitchRows:
    """The R rows of a switch, some of which are wrong."""

    name: str
    """The name of the switch."""
    prefix: NDArray[np.int32]
    """int32[R], the prefix of each row."""
    is_own: NDArray[np.bool_]
    """bool[R], whether it is the switch's own prefix, which it has to deliver."""
    has_hosts: NDArray[np.bool_]
    """bool[R], whether there are hosts under the prefix; otherwise no route may lead there."""
    egress: NDArray[Any]
    """int[R], of `Routes.egress`."""

    def wrong_row(self, r: int) -> Finding:
        """The finding for row r."""
        required = "a class that is there, or no route"
        if self.is_own[r]:
            required = "delivery here"
        elif not self.has_hosts[r]:
            required = "no route to a node without hosts"
        egress = int(self.egress[r])
        words = {local(self.egress): "delivery here", no_route(self.egress): "no route"}
        path = (self.name, "route to", int(self.prefix[r]))
        return Finding(path, required, words.get(egress, f"class {egress}"))


def classes(build: Build, use: PortUse) -> Iterator[Unsound]:
    """Ports of classes that are no fabric ports, or that occur twice in a class.

    These are the minimal port, the alternates, and the ports of `protection` and `bounce`.
    """
    c = build.tables.classes
    minimal = c.port
    yield from _ports(build, use, "class", minimal[..., None], (minimal != 0)[..., None])
    packed = packed_alternates(build, use)
    # Packed alternates are fabric ports, and none occurs twice. Only the minimal port may be among
    # them.
    alternates_sound = packed and not has(packed.links, use.links(minimal)[..., None]).any()
    orders = ("protection", "bounce") if alternates_sound else ("alternate", "protection", "bounce")
    for key in orders:
        ports = np.asarray(getattr(c, key))
        # Only after the last port may there be 0.
        before_last = np.logical_or.accumulate(ports[..., ::-1] != 0, axis=2)[..., ::-1]
        yield from _ports(build, use, key, ports, before_last)
        yield from unsound_where(
            _occurs_before(minimal, ports),
            lambda s, k, n, key=key, ports=ports: Finding(
                (build.wiring.names[s], key, k, n),
                "a port that the class does not use before",
                use.words(s, int(ports[s, k, n])),
            ),
        )


def _occurs_before(minimal: NDArray[np.int32], ports: Ports) -> NDArray[np.bool_]:
    """Whether ports are the minimal port of their class, or occur earlier in the same order.

    Args:
        minimal: int32[S, C].
        ports: int[S, C, n], an order of ports for each class; 0 is none.

    Returns:
        bool[S, C, n].
    """
    occurs_before: NDArray[np.bool_] = (ports == minimal[..., None]) & (ports != 0)
    before, after = ports[..., :-1], ports[..., 1:]
    # Where ports ascend, none occurs twice. Only orders that do not ascend are sorted to find out.
    unordered = np.argwhere(((after != 0) & ((after <= before) | (before == 0))).any(axis=2))
    ranked = np.sort(ports[tuple(unordered.T)], axis=1)
    twice = ((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] != 0)).any(axis=1)
    for s, k in unordered[twice].tolist():
        port_list = ports[s, k]
        occurs_before[s, k] |= repeated(port_list) & (port_list != 0)
    return occurs_before


def _ports(
    build: Build, use: PortUse, key: str, ports: Ports, required: NDArray[np.bool_]
) -> Iterator[Unsound]:
    """Ports that are no fabric ports with a cable.

    Args:
        build: its names are in the findings.
        use: the use of its ports.
        key: the name of the order of ports.
        ports: int[S, C, n].
        required: bool[S, C, n], where there has to be a port.
    """
    yield from unsound_where(
        required & (use.purposes(ports) != FABRIC),
        lambda s, k, n: Finding(
            (build.wiring.names[s], key, k, *([n] if ports.shape[2] > 1 else [])),
            "a fabric port with a cable",
            use.words(s, int(ports[s, k, n])),
        ),
    )


def weights(build: Build) -> Iterator[Unsound]:
    """Classes with a weight that has no port, or without any weight."""
    c = build.tables.classes
    if isinstance(c.alternate, AlternatePorts) and isinstance(c.weight, AlternateWeights):
        good = _packed_weights(c.alternate.packed, c.weight.packed, c.weight.shape[2] - 1)
    else:
        alternate, weight = np.asarray(c.alternate), np.asarray(c.weight)
        portless = np.where(alternate == 0, weight[..., 1:], 0)
        good = (portless.max(axis=2, initial=0) == 0) & (weight.sum(axis=2, dtype=np.int64) > 0)

    def finding(s: int, k: int) -> Finding:
        """The finding for class k of a switch."""
        path = (build.wiring.names[s], "weight", k)
        required = "weights of ports that there are, one above 0"
        return Finding(path, required, " ".join(map(str, c.weight[s, k].tolist())))

    yield from unsound_where(~good, finding)


def _packed_weights(ports: AlternateLinks, weights: AlternateLinks, most: int) -> NDArray[np.bool_]:
    """Whether all alternates of a class have its weight, and the class has any weight.

    Args:
        ports: the alternates of each class, as sets of links.
        weights: the links that have the weight of alternates, as sets, with the weights.
        most: the most alternates that have a weight.

    Returns:
        bool[S, C].
    """
    # A link without a port is no alternate, as in the array of ports.
    count = set_bits(ports.links & np.packbits(ports.port > 0, axis=1)[:, None])
    weighted = np.minimum(set_bits(weights.links), most)
    minimal_weight = weights.weight[..., 0]
    alternate_weight = np.where(weighted > 0, weights.weight[..., 1], 0)
    all_weighted = (alternate_weight == 0) | (count == weighted)
    good: NDArray[np.bool_] = all_weighted & ((minimal_weight > 0) | (alternate_weight > 0))
    return good
