"""Every value of a build is looked at: each check finds an edit that no other check finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from typing import Any

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.proof.proof_options import ProofOptions
from compilers.proof.soundness import address_soundness, graph_soundness, table_soundness
from compilers.proof.soundness.build_soundness import broken_claims
from compilers.proof.soundness.port_use import PortUse
from compilers.proof.soundness.unsound import UnsoundValues
from compilers.proof.walks.delivery import verify
from compilers.spec.allocations import POOL, AllocatedNumbers
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local, no_route
from polarfab.fabric import Fabric
from tests.compilers.proof.makers import within
from tests.compilers.routed import ports_beyond_a_byte, routed

Edit = Callable[[Build], Build]


def fabric() -> Build:
    return routed(q=5, spread=True, protect="link", hosts=2)


def put(path: str, array: str, where: Any, value: Any) -> Edit:
    """An edit of one value of an array; a function of the build gives the value."""

    def edit(build: Build) -> Build:
        inner: Any = build
        for word in path.split("."):
            inner = getattr(inner, word)
        changed = getattr(inner, array).copy()
        changed[where] = value(build) if callable(value) else value
        return within(build, path, **{array: changed})

    return edit


def swapped(build: Build) -> Build:
    """Two hosts of two switches have each other's... the same MAC address."""
    mac = build.addressing.host_mac.copy()
    mac[3, 1] = mac[20, 0]
    return within(build, "addressing", host_mac=mac)


def host_port(build: Build) -> int:
    return int(build.wiring.host_port[7, 0])


def moved_link(build: Build) -> Build:
    """One end of a cable is on a free port, and its other end does not know."""
    s = int(np.flatnonzero((build.wiring.far < 0).any(axis=1))[0])
    port = build.wiring.port.copy()
    free = set(range(1, 7)) - set(port[s].tolist())
    old, port[s, 0] = int(port[s, 0]), free.pop()
    build = within(build, "wiring", port=port)
    classes = build.tables.classes
    words = ("port", "alternate", "protection", "bounce")
    arrays = {word: getattr(classes, word).copy() for word in words}
    for array in arrays.values():
        array[s][array[s] == old] = port[s, 0]
    return within(build, "tables.classes", **arrays)


def two_on_one_port(build: Build) -> Build:
    port = build.wiring.host_port.copy()
    port[7, 1] = port[7, 0]
    return within(build, "wiring", host_port=port)


def names(word: str, place: int, value: str) -> Edit:
    def edit(build: Build) -> Build:
        texts = list(getattr(build.wiring, word))
        texts[place] = value
        return within(build, "wiring", **{word: tuple(texts)})

    return edit


def weight_without_port(build: Build) -> Build:
    """A class with fewer alternates than others has a weight behind the last."""
    classes = build.tables.classes
    s, k, n = np.argwhere(np.asarray(classes.alternate) == 0)[0].tolist()
    return put("tables.classes", "weight", (s, k, n + 1), 1)(build)


def no_alternate(build: Build) -> Build:
    """A class with its last alternate and weight gone: every packet still arrives."""
    classes = build.tables.classes
    alternate, weight = classes.alternate.copy(), classes.weight.copy()
    last = np.count_nonzero(alternate[7, 1]) - 1
    alternate[7, 1, last] = weight[7, 1, last + 1] = 0
    return within(build, "tables.classes", alternate=alternate, weight=weight)


def apex_bounces(build: Build) -> Build:
    """The bounce of a class is the one neighbour from which the path comes by the next hop."""
    w, bounce = build.wiring, build.tables.classes.bounce.copy()
    for s, k in np.argwhere(w.far >= 0):
        x = w.far[s, k]
        apex = [j for j in range(len(w.far[s])) if w.far[s, j] >= 0 and w.far[s, j] in w.far[x]]
        if apex:
            bounce[s, k, 1] = w.port[s, apex[0]]
            return within(build, "tables.classes", bounce=bounce)
    raise AssertionError("no triangle")


def shared_link(build: Build) -> Build:
    """Alternates of a policy that forbids to share a link with the minimal path."""
    return replace(build, forwarding=replace(build.forwarding, disjoint=True))


def class_of_the_neighbour(build: Build) -> Build:
    """A row goes by the class for the neighbour itself, without alternates: all arrives."""
    routes, links = build.tables.routes, build.wiring.port.shape[1]
    row = int(np.flatnonzero(routes.egress[7] == 1)[0])
    return put("tables.routes", "egress", (7, row), links + 1)(build)


def smaller_pool(build: Build) -> Build:
    return within(build, "addressing", ipv4=IPv4Network("10.0.0.0/26"))


def six(build: Build) -> Build:
    return within(build, "addressing", ipv6=IPv6Network("fd00::/62"))


def first_at(*first: str) -> Edit:
    return lambda build: within(build, "addressing", first=first)


def other_graph(build: Build) -> Build:
    graph = build.topology.graph
    targets = graph.targets.copy()
    targets[:2] = targets[1::-1]
    return within(build, "topology", graph=replace(graph, targets=targets))


CHECKS: dict[str, Callable[[Build], Any]] = {
    "node types": graph_soundness.check_node_types,
    "graph": graph_soundness.check_graph,
    "family": graph_soundness.check_family,
    "ports": lambda b: graph_soundness.check_ports(b, PortUse.of(b.wiring)),
    "cables": lambda b: graph_soundness.check_cables(b, PortUse.of(b.wiring)),
    "prefixes": table_soundness.check_prefixes,
    "rows": table_soundness.check_rows,
    "classes": lambda b: table_soundness.check_classes(b, PortUse.of(b.wiring)),
    "names": address_soundness.check_names,
    "datapath ids": address_soundness.check_datapath_ids,
    "MAC addresses": address_soundness.check_mac_addresses,
    "blocks": address_soundness.check_blocks,
    "weights": table_soundness.check_weights,
    "claims": broken_claims,
}
EDITS: list[tuple[str, Edit]] = [
    ("node types", put("wiring", "node_type", 7, 1)),
    ("graph", other_graph),
    ("family", put("topology", "coordinates", (7, 0), 3)),
    ("family", put("topology", "kind", 7, lambda b: (b.topology.kind[7] + 1) % 3)),
    ("family", lambda b: within(b, "topology", diameter=3)),
    ("ports", two_on_one_port),
    ("ports", put("wiring", "host_port", (7, 0), 9)),
    ("ports", put("wiring", "host_port", (7, 1), 0)),
    ("cables", moved_link),
    ("cables", put("wiring", "far_port", (7, 1), lambda b: b.wiring.far_port[7, 1] % 6 + 1)),
    ("prefixes", put("tables.routes", "aggregate", 7, 40)),
    ("classes", put("tables.classes", "bounce", (7, 7, 0), host_port)),
    ("classes", put("tables.classes", "protection", (7, 9, 1), host_port)),
    ("names", names("names", 7, "8")),
    ("names", names("host_names", 7, "h8-1")),
    ("names", names("management", 7, "nowhere")),
    ("datapath ids", put("wiring", "datapath_id", 7, 9)),
    ("datapath ids", put("wiring", "datapath_id", 7, 0)),
    ("MAC addresses", swapped),
    ("MAC addresses", lambda b: within(b, "addressing", gateway_mac=0x020000030001)),
    ("MAC addresses", put("addressing", "host_mac", (7, 1), 0x030000000001)),
    ("blocks", smaller_pool),
    ("blocks", six),
    ("blocks", lambda b: within(b, "addressing", ipv4_length=31)),
    ("blocks", lambda b: within(b, "addressing", ipv4_length=30)),
    ("blocks", first_at("10.0.0.66")),
    ("blocks", first_at("10.255.255.128")),
    ("blocks", first_at("9.255.255.248")),
    ("blocks", first_at("fd00::")),
    ("blocks", first_at("nowhere")),
    ("blocks", first_at("10.0.0.0", "fd00::")),
    ("weights", put("tables.classes", "weight", (7, 1), 0)),
    ("weights", weight_without_port),
    ("claims", no_alternate),
    ("claims", apex_bounces),
    ("claims", put("tables.classes", "bounce", (7, 1, 1), 0)),
    ("claims", shared_link),
    ("claims", class_of_the_neighbour),
]


def finds(check: Callable[[Build], Any], build: Build) -> UnsoundValues:
    found = check(build)
    return found if isinstance(found, UnsoundValues) else UnsoundValues.of(found)


def test_a_sound_build_has_no_findings() -> None:
    for name, check in CHECKS.items():
        assert not finds(check, fabric()).count, name


@pytest.mark.parametrize(("name", "edit"), EDITS, ids=lambda v: v if isinstance(v, str) else "")
def test_only_this_check_finds_it(name: str, edit: Edit) -> None:
    broken = edit(fabric())
    found = finds(CHECKS[name], broken)
    assert found.count
    assert all(f.given != f.required for f in found.findings)
    # Without node types there is nothing else to look at.
    others = [n for n in CHECKS if n != name and name != "node types"]
    assert not [n for n in others if finds(CHECKS[n], broken).count]
    report = verify(broken)
    assert not report.passed
    assert report.unsound.count == found.count


def test_blocks_begin_where_allocations_say() -> None:
    """A pool that was enlarged in front of blocks was taken to begin with them."""
    nodes = [{"name": f"n{v}", "type": "switch-32"} for v in range(7)]
    keys = {"name": "lab", "topology": {"family": "polarfly", "q": 2}, "planes": 1}
    pools = {"ipv4": "10.4.0.128/27", "ipv6": "fd00:0:0:8::/61"}
    before = Fabric.from_spec({**keys, "addressing": pools}, {"nodes": nodes}).compile()
    larger = {"ipv4": "10.4.0.0/24", "ipv6": "fd00::/60"}
    kept = Fabric.from_spec({**keys, "addressing": larger}, {"nodes": nodes}).compile(before)
    (build,) = kept.compiled
    assert build.addressing.first == ("10.4.0.128", "fd00:0:0:8::")
    assert not finds(address_soundness.check_blocks, build).count
    assert verify(build).passed
    listed = dict(build.allocations.numbers)
    listed[POOL] = AllocatedNumbers(
        {**listed[POOL].used, "ipv4": int(IPv4Network("10.4.0.0/24")[0])}
    )
    for broken, paths in (
        (within(build, "addressing", first=()), {"ipv4", "ipv6"}),
        (within(build, "allocations", numbers=listed), {"ipv4"}),
        (within(build, "addressing", ipv6=None, first=("10.4.0.128",)), {"ipv6"}),
    ):
        named = {str(f.path[0]).split()[-1] for f in finds(CHECKS["blocks"], broken).findings}
        assert named == paths
        assert not verify(broken).passed


def test_a_host_without_port_is_one_whose_port_the_inventory_calls_broken() -> None:
    """Any host without a port was taken for one, and its address led nowhere."""
    ports = [{"name": "a{}", "count": 4, "role": "fabric"}, {"name": "h{}", "count": 2}]
    nodes = [{"name": f"n{v}", "type": "leaf"} for v in range(13)]
    nodes[3] |= {"disabled_ports": ["h1"]}
    inventory = {"node_types": {"leaf": {"ports": ports}}, "nodes": nodes}
    topology = {"family": "polarfly", "q": 3}
    keys = {"name": "lab", "topology": topology, "hosts_per_node": 2, "inventory": inventory}
    build = compile_fabric(load_fabric(keys))
    assert not finds(CHECKS["ports"], build).count
    for edit in (
        put("wiring", "host_port", (7, 1), 0),
        put("hardware", "host_broken", (7, 1), True),
        put("hardware", "host_broken", (3, 0), False),
    ):
        assert [n for n in CHECKS if finds(CHECKS[n], edit(build)).count] == ["ports"]


def test_a_host_port_among_alternates_is_named() -> None:
    """Such a port was taken for one whose cable is dead, and packets to it were lost."""
    build = fabric()
    edit = put("tables.classes", "alternate", (7, 1, 0), host_port)
    report = verify(edit(build), ProofOptions(failures=("link",)))
    assert not report.passed
    (text,) = report.unsound.texts()
    assert text == (
        "7.alternate[1][0]: required a fabric port with a cable, given port 7, a host port"
    )


def test_lists_of_neighbours_that_overlap_are_no_graph() -> None:
    graph = fabric().topology.graph
    offsets = graph.offsets.copy()
    offsets[3] = offsets[5]
    broken = within(fabric(), "topology", graph=replace(graph, offsets=offsets))
    report = verify(broken)
    assert [finding.path for finding in report.unsound.findings] == [("graph",)]


@pytest.mark.parametrize("given", [0, 1, 2])
def test_lists_of_neighbours_that_are_not_mutual_are_no_graph(given: int) -> None:
    """A link of one end, one twice, a loop: each in ascending lists, but for the one twice."""
    graph = fabric().topology.graph
    targets = graph.targets.copy()
    near = graph.neighbours(0)
    unlike = [v for v in range(int(near[-1]) + 1, graph.order) if v not in near]
    last = graph.offsets[1] - 1
    targets[last] = (unlike[0], targets[last - 1], targets[last])[given]
    if given == 2:
        targets[0] = 0
    broken = within(fabric(), "topology", graph=replace(graph, targets=targets))
    (found,) = graph_soundness.check_graph(broken)
    assert found.texts()[0].startswith("graph: required lists of neighbours that name each other")


def test_a_port_of_a_class_is_named_without_a_place() -> None:
    build = within(fabric(), "tables.classes", port=fabric().tables.classes.port + 0)
    build = put("tables.classes", "port", (7, 1), host_port)(build)
    texts = verify(build).unsound.texts()
    assert texts[0].startswith("7.class[1]: required a fabric port with a cable")


def test_numbers_beyond_a_byte_change_nothing() -> None:
    few = routed(q=3, spread=True, protect="node", hosts=2)
    many = ports_beyond_a_byte(few)
    assert not [name for name, check in CHECKS.items() if finds(check, many).count]
    kinds = ("link", "node")
    one, other = (
        verify(few, ProofOptions(failures=kinds)),
        verify(many, ProofOptions(failures=kinds)),
    )
    assert one.passed
    assert other == one


def test_a_row_for_an_aggregate_that_is_not_there() -> None:
    routes, order = fabric().tables.routes, fabric().tables.switches
    prefix = np.append(routes.prefix, np.full((1, 1), order, np.int32), axis=1)
    egress = np.pad(routes.egress, ((0, 0), (0, 1)))
    broken = within(fabric(), "tables.routes", prefix=prefix, egress=egress)
    assert finds(table_soundness.check_rows, broken).count == order


def test_a_row_goes_by_the_class_of_those_that_the_same_neighbours_serve() -> None:
    """By another class of the same port all arrives, and fewer alternates share it."""
    build = routed("oft", q=2, spread=True, protect="link")
    c, egress = build.tables.classes, build.tables.routes.egress
    count = np.count_nonzero(c.alternate, axis=2)
    s, row, other = next(
        (s, row, other)
        for s, row in np.argwhere(egress < c.port.shape[1]).tolist()
        for other in sorted(set(egress[s].tolist()) & set(range(c.port.shape[1])))
        if c.port[s, other] == c.port[s, egress[s, row]]
        and c.protection[s, other].tolist() == c.protection[s, egress[s, row]].tolist()
        and 0 < count[s, other] < count[s, egress[s, row]]
    )
    broken = put("tables.routes", "egress", (s, row), other)(build)
    assert not finds(CHECKS["claims"], build).count
    assert [name for name in CHECKS if finds(CHECKS[name], broken).count] == ["claims"]
    assert not verify(broken).passed


def test_strays_are_not_passed() -> None:
    report = verify(fabric())
    assert report.alternates is not None
    assert report.passed
    assert not replace(report, alternates=replace(report.alternates, strays=1)).passed
    assert not replace(report, unsound=UnsoundValues(1)).passed


def test_only_rows_know_of_routes_to_nobody() -> None:
    """Spines have no hosts: no packet ever shows where a row for them leads."""
    build = routed("oft", q=2, protect="link")
    routes = build.tables.routes
    nobody = ~build.topology.endpoints[np.minimum(routes.prefix[0], routes.egress.shape[0] - 1)]
    rows = np.argwhere((routes.egress == no_route(routes.egress)) & nobody)
    for value in (0, 77, local(routes.egress)):
        broken = put("tables.routes", "egress", tuple(rows[3]), value)(build)
        report = verify(broken)
        assert not report.passed
        assert report.delivered == report.pairs
        found = {name: finds(check, broken).count for name, check in CHECKS.items()}
        assert {name for name, count in found.items() if count} == {"rows"}
