"""The values of a build, looked at one by one: types, ports, cables, the graph, rows, identities.

Ports mean what they say, at both ends of every cable; names, ids and addresses are of one only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_address

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import (
    ABSENT,
    FABRIC,
    Ports,
    PortUse,
    has,
    packed_alternates,
)
from compilers.proof.soundness.unsound import Unsound, repeated, where
from compilers.spec.address_blocks import FIRST_HOST, block_count
from compilers.tables.build import Build
from compilers.tables.computed_array import blocks_of
from compilers.tables.intermediate_form import local, no_route
from compilers.tables.packed_alternates import (
    AlternateLinks,
    AlternatePorts,
    AlternateWeights,
    counts,
)
from compilers.tables.star_rows import StarPrefixes
from compilers.topology.adjacency import Graph
from compilers.topology.families import GRAPH_FAMILY, build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import added_clusters, expand
from compilers.wiring.addressing import format_mac
from inventory.problems import Finding, InputError, shown


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


def prefixes(build: Build) -> Iterator[Unsound]:
    """Prefix numbers that are not ascending or not there, and aggregates of other switches."""
    routes, hierarchy = build.tables.routes, build.topology.hierarchy
    order = len(routes.egress)
    whole = _aggregates(build)
    prefix = routes.prefix
    if isinstance(prefix, StarPrefixes) and (np.diff(prefix.packed.around, axis=1) <= 0).any():
        yield Unsound.one("routes.prefix", "supernodes around each that ascend", "others")
        return
    # Sets with fewer rows than others end in rows of the first number that is no prefix.
    for first, rows in blocks_of(prefix):
        wrong = (rows < 0) | (rows > order + whole)
        wrong[:, 1:] |= (rows[:, 1:] <= rows[:, :-1]) & (rows[:, 1:] < order + whole)
        yield from where(
            wrong,
            lambda g, r: Finding(
                ("routes", "prefix", g, r),
                f"ascending numbers below {order + whole}",
                f"{prefix[g, r]}",
            ),
            first,
        )
    own = order + np.arange(order) // hierarchy
    covered = (routes.aggregate == own) & (hierarchy > 1)
    yield from where(
        (routes.aggregate != -1) & ~covered,
        lambda s: Finding(
            (build.wiring.names[s], "aggregate"),
            f"{own[s]}, or -1" if hierarchy > 1 else "-1",
            f"{routes.aggregate[s]}",
        ),
    )
    if len(prefix) == 0 or order % len(prefix):
        yield Unsound.one("routes.prefix", f"sets that divide {order}", f"{len(prefix)}")


def _aggregates(build: Build) -> int:
    hierarchy = build.topology.hierarchy
    return build.tables.switches // hierarchy if hierarchy > 1 else 0


def rows(build: Build) -> Iterator[Unsound]:
    """Rows by a class that does not exist, for no switch, or delivering what is for others."""
    routes, port = build.tables.routes, build.tables.classes.port
    egress, order = routes.egress, len(routes.egress)
    here, nothing = local(egress), no_route(egress)
    allowed = np.zeros((order, here + 1), np.bool_)
    classes = min(port.shape[1], nothing)
    allowed[:, :classes] = port[:, :classes] > 0
    allowed[:, nothing] = True
    endpoints = np.append(build.topology.endpoints, np.ones(_aggregates(build) + 1, np.bool_))
    endpoints[-1] = False
    same = order // len(routes.prefix)
    for s, row in enumerate(egress):
        if s % same == 0:
            prefix = routes.prefix[s // same]
            hosts = endpoints[np.minimum(prefix, len(endpoints) - 1)]
        wrong = ~allowed[s].take(row)
        wrong |= ~hosts & (row != nothing)
        own = hosts & (prefix == s)
        wrong[own] = row[own] != here
        if wrong.any():
            known = build.wiring.names[s], prefix.tolist(), own, hosts
            yield from where(wrong, partial(_wrong_row, *known, row.tolist(), here, nothing))


def _wrong_row(
    name: str,
    prefix: list[int],
    own: NDArray[np.bool_],
    hosts: NDArray[np.bool_],
    egress: list[int],
    here: int,
    nothing: int,
    r: int,
) -> Finding:
    """What is wrong with row r of a switch."""
    required = "a class that is there, or no route"
    if own[r]:
        required = "delivery here"
    elif not hosts[r]:
        required = "no route to a node without hosts"
    given = {here: "delivery here", nothing: "no route"}.get(egress[r], f"class {egress[r]}")
    return Finding((name, "route to", prefix[r]), required, given)


def classes(build: Build, use: PortUse) -> Iterator[Unsound]:
    """Ports of classes, of alternates and of repair that are no fabric ports, or occur twice."""
    c = build.tables.classes
    minimal = c.port
    yield from _ports(build, use, "class", minimal[..., None], (minimal != 0)[..., None])
    spread = packed_alternates(build, use)
    known = spread and not has(spread.links, use.links(minimal)[..., None]).any()
    for word in ("protection", "bounce") if known else ("alternate", "protection", "bounce"):
        ports = np.asarray(getattr(c, word))
        ranked = np.logical_or.accumulate(ports[..., ::-1] != 0, axis=2)[..., ::-1]
        yield from _ports(build, use, word, ports, ranked)
        again = _again(minimal, ports)
        yield from where(
            again,
            lambda s, k, n, word=word, ports=ports: Finding(
                (build.wiring.names[s], word, k, n),
                "a port that the class does not use before",
                use.words(s, int(ports[s, k, n])),
            ),
        )


def _again(minimal: NDArray[np.int32], ports: Ports) -> NDArray[np.bool_]:
    """bool[S, C, n]: ports that are the class's own, or occur earlier in the same row."""
    again: NDArray[np.bool_] = (ports == minimal[..., None]) & (ports != 0)
    before, after = ports[..., :-1], ports[..., 1:]
    # Where ports ascend none occurs twice, and no row has to be sorted.
    mixed = np.argwhere(((after != 0) & ((after <= before) | (before == 0))).any(axis=2))
    ranked = np.sort(ports[tuple(mixed.T)], axis=1)
    twice = ((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] != 0)).any(axis=1)
    for s, k in mixed[twice].tolist():
        row = ports[s, k]
        again[s, k] |= repeated(row) & (row != 0)
    return again


def _ports(build: Build, use: PortUse, word: str, ports: Ports, there: Ports) -> Iterator[Unsound]:
    """Ports that are `there`, bool of their shape, and no fabric ports with a cable."""
    yield from where(
        there & (use.at(ports) != FABRIC),
        lambda s, k, n: Finding(
            (build.wiring.names[s], word, k, *([n] if ports.shape[2] > 1 else [])),
            "a fabric port with a cable",
            use.words(s, int(ports[s, k, n])),
        ),
    )


def weights(build: Build) -> Iterator[Unsound]:
    """Weights without a port, and classes without a weight."""
    c = build.tables.classes
    if isinstance(c.alternate, AlternatePorts) and isinstance(c.weight, AlternateWeights):
        good = _packed_weights(c.alternate.packed, c.weight.packed, c.weight.shape[2] - 1)
    else:
        alternate, weight = np.asarray(c.alternate), np.asarray(c.weight)
        portless = weight[..., 1:] * (alternate == 0)
        good = (portless.max(axis=2, initial=0) == 0) & (weight.sum(axis=2, dtype=np.int64) > 0)

    def finding(s: int, k: int) -> Finding:
        path = (build.wiring.names[s], "weight", k)
        required = "weights of ports that there are, one above 0"
        return Finding(path, required, " ".join(map(str, c.weight[s, k].tolist())))

    yield from where(~good, finding)


def _packed_weights(ports: AlternateLinks, spread: AlternateLinks, most: int) -> NDArray[np.bool_]:
    """bool[S, C]: alternates have one weight, up to `most` of them, and nothing else has one."""
    # No port is no alternate, as in the array of ports.
    count = counts(ports.links & np.packbits(ports.port > 0, axis=1)[:, None])
    weighted = np.minimum(counts(spread.links), most)
    each = spread.weight[..., 1] * (weighted > 0)
    good: NDArray[np.bool_] = ((each == 0) | (count == weighted)) & (
        (spread.weight[..., 0] > 0) | (each > 0)
    )
    return good


MULTICAST, LARGEST_MAC = 1 << 40, (1 << 48) - 1


def names(build: Build) -> Iterator[Unsound]:
    """Names that are missing, or those of two nodes, hosts or management addresses."""
    w = build.wiring
    order, hosts = w.host_port.shape
    for word, texts, count in (
        ("nodes", w.names, order),
        ("management", w.management, order),
        ("hosts", w.host_names, order * hosts),
    ):
        if len(texts) != count:
            yield Unsound.one(word, f"{count} names", f"{len(texts)}")
    yield from _names("names", (*w.names, *w.host_names))
    given = [text for text in w.management if text]
    yield from _names("management", given)
    yield from where(
        np.array([not _is_address(t) for t in given], np.bool_),
        lambda i: Finding(("management", i), "an address", shown(given[i])),
    )


def _names(word: str, texts: Sequence[str]) -> Iterator[Unsound]:
    wrong = repeated(texts) | (np.array(texts, object) == "")
    yield from where(
        wrong,
        lambda i: Finding((word, i), "a name that no other has", shown(texts[i] or None)),
    )


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def datapath_ids(build: Build) -> Iterator[Unsound]:
    """Datapath ids that are 0, or those of two switches."""
    ids = build.wiring.datapath_id
    yield from where(
        repeated(ids) | (ids == 0),
        lambda s: Finding(
            (build.wiring.names[s], "datapath_id"),
            "an id that no other switch has",
            f"{int(ids[s]):#x}",
        ),
    )


def mac_addresses(build: Build) -> Iterator[Unsound]:
    """MAC addresses that are no host's own: of two, of the gateway, or of a group."""
    a, hosts = build.addressing, build.wiring.host_port.shape[1]
    mac, gateway = a.host_mac.ravel(), a.gateway_mac
    # A pool of switches without hosts has the same addresses at several of them.
    wrong = repeated(mac) | (mac == gateway) | (mac == 0) | (mac > LARGEST_MAC)
    wrong |= (mac & np.uint64(MULTICAST)) != 0
    yield from where(
        wrong,
        lambda i: Finding(
            (build.wiring.names[i // hosts], "hosts", i % hosts, "mac"),
            "a unicast MAC address that no other host has, nor the gateway",
            format_mac(int(mac[i])) if mac[i] <= LARGEST_MAC else f"{int(mac[i]):#x}",
        ),
    )
    if not 0 < gateway <= LARGEST_MAC or gateway & MULTICAST:
        yield Unsound.one("addressing.gateway_mac", "a unicast MAC address", f"{gateway:#x}")


def blocks(build: Build) -> Iterator[Unsound]:
    """Pools that cannot hold the blocks of all switches, blocks that cannot hold their hosts."""
    a, order, hierarchy = build.addressing, build.tables.switches, build.topology.hierarchy
    if a.hierarchy != hierarchy:
        yield Unsound.one("addressing.hierarchy", f"{hierarchy}", f"{a.hierarchy}")
        return
    hosts = build.wiring.host_port.shape[1]
    length, needed = a.ipv4_length, block_count(order, hierarchy)
    most = 1 << max(32 - length, 0)
    if not 0 < length <= 32 or most < hosts + FIRST_HOST + 1:
        yield Unsound.one(
            "addressing.ipv4_length", f"blocks with room for {hosts} hosts", f"/{length}"
        )
        return
    yield from _pool("addressing.ipv4", a.ipv4, length, needed)
    if a.ipv6 is not None:
        yield from _pool("addressing.ipv6", a.ipv6, 64, needed)


def _pool(
    path: str, pool: IPv4Network | IPv6Network, length: int, needed: int
) -> Iterator[Unsound]:
    if pool.prefixlen > length or 1 << (length - pool.prefixlen) < needed:
        yield Unsound.one(path, f"a pool of {needed:,} blocks of /{length}", f"{pool}")
    if any((pool.is_multicast, pool.is_loopback, pool.is_link_local, pool.is_unspecified)):
        yield Unsound.one(path, "a pool of unicast addresses", f"{pool}")
