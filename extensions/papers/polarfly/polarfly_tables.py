"""The tables of PolarFly: A Cost-Effective and Flexible Low-Diameter Topology (Lakhotia, 2022).

Each function with the parameter `_quick` reproduces a table and returns its rows and claims as
`Evidence`; `polarfly_paper` lists them. The kinds of vertices of PolarFly are W (quadrics), V1
(their neighbours) and V2 (all others).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.growth import Growth, growth
from compilers.evaluation.analysis.path_diversity import PathClass, diversity
from compilers.families.polarfly import triangles
from compilers.topology.families import BASELINES, FAMILIES, build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import layout
from compilers.topology.replicated_clusters import expand
from extensions.papers.compared_network import ComparedNetwork
from extensions.papers.exhibit import Evidence, PaperClaim, or_nan
from extensions.papers.paper_tables import table_evidence

RADIXES = range(8, 129)
"""The radixes for which Table I looks for a network of each family."""
Parameters = Mapping[str, int | str | None]
"""The parameters of a topology, as in a spec."""


@dataclass(frozen=True, slots=True)
class FeasibilityRow:
    """A row of Table I: the small network that is measured, and what the paper marks."""

    family: str
    """The family of the network."""
    parameters: Parameters
    """The parameters of a small member."""
    larger: Parameters
    """The parameters of the next larger member; of PolarFly, a copied fan is added instead."""
    unit: int
    """The index of the coordinate that numbers the units of a network, such as its groups."""
    marks: str
    """The letters in `SAYS` of what is supported, fully or in part: both look alike in the text."""


COMPARED = {
    "Fat tree": FeasibilityRow("fat-tree", {"k": 4, "pods": 4}, {"k": 4, "pods": 5}, 1, "MEF"),
    "Dragonfly": FeasibilityRow(
        "dragonfly", {"h": 2, "groups": 5}, {"h": 2, "groups": 9}, 0, "DMEF"
    ),
    "HyperX": FeasibilityRow("hyperx", {"sides": "4x4"}, {"sides": "4x5"}, 1, "DMEF2"),
    "OFT": FeasibilityRow("oft", {"q": 3}, {"q": 4}, 0, "MF2"),
    "MLFM": FeasibilityRow("mlfm", {"n": 4}, {"n": 5}, 0, "MF2"),
    "Slim Fly": FeasibilityRow("slimfly", {"q": 5}, {"q": 7}, 1, "DMEF2"),
    "PolarFly": FeasibilityRow("polarfly", {"q": 5}, {}, 0, "DMEF2"),
}
"""The rows of Table I."""
SAYS = {
    "D": "direct",
    "M": "modular, more than one unit",
    "E": "expandable by units, and all cables stay",
    "F": "flexible",
    "2": "diameter 2",
}
"""The properties of Table I, by the letters in `FeasibilityRow.marks`."""
READINGS = {
    "M": "Read as: more than one unit of switches with hosts, alike in size and links.",
    "E": "Read as: the next larger one has all cables of a small one in place, and its further"
    " switches with hosts are in units of their own.",
}
"""How properties are read that have no measure in the paper, by the same letters."""
IN_PART = (
    "{:.0f} % of the cables of a small one stay in the next larger one, switches matched by"
    " coordinates. Partial support has no measure, and a smaller part may have no mark."
)
"""Why "expandable" is not judged if some cables stay; their percentage is put in."""
OF_RADIXES = (
    "{} of the radixes 8 to 128 have a member. The paper does not say how many are flexible, and"
    " all seven networks have a mark."
)
"""Why "flexible" is not judged; the number of radixes is put in."""
BETWEEN = {
    1: {("V1", "V1"): "V1", ("V1", "V2"): "V2", ("V2", "V2"): "V1"},
    3: {("V1", "V1"): "V2", ("V1", "V2"): "V1", ("V2", "V2"): "V2"},
}
"""Table III as printed: by q mod 4, and by the kinds of two adjacent vertices, the kind of the
vertex between them."""


def feasibility(_quick: bool) -> Evidence:
    """Table I: each property is measured; full and partial support are the same here."""
    claims, rows = [], []
    for name, printed in COMPARED.items():
        topology = build_topology(printed.family, printed.parameters)
        if printed.family == "polarfly":
            expansion = expand(topology, "fan")
            grown, before, after = expansion.topology, layout(topology).rack, expansion.layout.rack
        else:
            grown = build_topology(printed.family, printed.larger)
            before, after = (network.coordinates[:, printed.unit] for network in (topology, grown))
        units = _count_equal_units(topology, before)
        links_kept, radixes = _share_of_links_kept(topology, grown), _count_radixes(printed.family)
        by_units = _units_stay_as_large(before[topology.endpoints], after[grown.endpoints])
        diameter = distribution(topology).diameter or 0
        direct = bool(topology.endpoints.all())
        in_part = 0 < links_kept < 1
        measured = {
            "D": direct,
            "M": units > 1,
            "E": None if in_part else links_kept == 1 and by_units,
            "F": None,
            "2": diameter == 2,
        }
        reasons = {
            "E": IN_PART.format(100 * links_kept) if in_part else "",
            "F": OF_RADIXES.format(radixes),
        }
        for letter, holds in measured.items():
            claims.append(
                PaperClaim(
                    f"{name}: {SAYS[letter]}",
                    float(letter in printed.marks),
                    None if holds is None else float(holds),
                    interpretation=READINGS.get(letter, ""),
                    reason=reasons.get(letter, ""),
                )
            )
        direct_text, by_units_text = ("yes" if holds else "no" for holds in (direct, by_units))
        rows.append((name, direct_text, units, links_kept, by_units_text, radixes, diameter))
    heads = (
        "network",
        "direct",
        "units",
        "cables that stay",
        "more units, of their size",
        "radixes 8 to 128",
        "diameter",
    )
    members = "; ".join(
        ComparedNetwork(printed.family, printed.parameters, 0).title()
        for printed in COMPARED.values()
    )
    setup = (
        "Full and partial support look alike in the text: both are support here.",
        f"Each word but flexible is measured of one small member: {members}.",
    )
    return Evidence(tuple(claims), heads, tuple(rows), setup=setup)


def _count_equal_units(topology: Topology, unit: NDArray[np.integer]) -> int:
    """How many units of switches with hosts are alike in size and in the links inside.

    Args:
        topology: the network.
        unit: the unit of each switch.
    """
    edges = topology.graph.edges()
    tails, heads = unit[edges[topology.endpoints[edges].all(axis=1)]].T
    inside = np.bincount(tails[tails == heads], minlength=int(unit.max()) + 1)
    sizes = np.bincount(unit[topology.endpoints], minlength=len(inside))
    shapes = np.stack((sizes, inside), axis=1)[sizes > 0]
    return int(np.unique(shapes, axis=0, return_counts=True)[1].max())


def _units_stay_as_large(before: NDArray[np.integer], after: NDArray[np.integer]) -> bool:
    """Whether the units of a network have as many switches in a larger one, which has more units.

    Args:
        before: the unit of each switch with hosts.
        after: the same of the larger network.
    """
    count = int(before.max()) + 1
    larger = np.bincount(after)
    return len(larger) > count and np.array_equal(np.bincount(before), larger[:count])


def _share_of_links_kept(topology: Topology, grown: Topology) -> float:
    """The part of a network's links that join the same switches in a larger network.

    A switch of PolarFly, which was expanded, has the same number there. Any other one has the same
    kind and coordinates.
    """

    def names(network: Topology) -> list[tuple[int, ...]]:
        """The kind and the coordinates of each vertex."""
        rows = np.column_stack((network.kind, network.coordinates)).tolist()
        return [tuple(row) for row in rows]

    switch_of_name = {name: switch for switch, name in enumerate(names(grown))}
    if topology.family == "polarfly":
        same_switch = list(range(topology.graph.order))
    else:
        same_switch = [switch_of_name.get(name, -1) for name in names(topology)]
    links = {frozenset(link) for link in grown.graph.edges().tolist()}
    same_links = [
        frozenset(same_switch[switch] for switch in link)
        for link in topology.graph.edges().tolist()
    ]
    return sum(link in links for link in same_links) / len(same_links)


def _count_radixes(family: str) -> int:
    """How many of the radixes have a design of a family."""
    family_object = FAMILIES.get(family) or BASELINES[family]
    return sum(any(True for _ in family_object.designs(radix)) for radix in RADIXES)


def inter_cluster_triangles(_quick: bool) -> Evidence:
    """Table II, counted."""
    claims, rows = [], []
    for q in (5, 7, 9, 11, 13, 17, 19, 23, 25, 27, 31):
        topology = build_topology("polarfly", {"q": q})
        corners = triangles(topology)
        rack = layout(topology).rack[corners]
        between_racks = corners[(rack != rack[:, :1]).any(axis=1)]
        corners_in_v2 = (topology.kind[between_racks] == topology.kinds.index("V2")).sum(axis=1)
        counts = np.bincount(corners_in_v2, minlength=4).tolist()
        if q % 4 == 1:
            printed = [q * (q - 1) * (q - 5) // 24, 0, q * (q - 1) ** 2 // 8, 0]
        else:
            printed = [0, q * (q - 1) * (q - 3) // 8, 0, (q + 1) * q * (q - 1) // 24]
        for number, (count_printed, count) in enumerate(zip(printed, counts, strict=True)):
            claims.append(
                PaperClaim(f"q = {q}: triangles with {number} of V2", count_printed, count)
            )
        claims.append(PaperClaim(f"q = {q}: C(q, 3) in all", comb(q, 3), len(between_racks)))
        rows.append((q, *counts))
    heads = ("q", "(v1, v1, v1)", "(v1, v1, v2)", "(v1, v2, v2)", "(v2, v2, v2)")
    return Evidence(tuple(claims), heads, tuple(rows))


def intermediate_kinds(_quick: bool) -> Evidence:
    """Table III: the kind of the vertex between two adjacent ones, of every such pair."""
    claims, rows = [], []
    for q in (5, 7, 9, 11, 13, 17, 19, 23):
        topology = build_topology("polarfly", {"q": q})
        kinds = np.sort(topology.kind[triangles(topology)], axis=1)
        for ends, printed in BETWEEN[q % 4].items():
            with_ends = kinds[_have_pair(kinds, *(topology.kinds.index(name) for name in ends))]
            as_printed = sorted(topology.kinds.index(name) for name in (*ends, printed))
            count = int((with_ends == as_printed).all(axis=1).sum())
            rows.append((q, *ends, printed, len(with_ends), count))
            says = f"q = {q}: {printed} is between {ends[0]} and {ends[1]}: part of their triangles"
            claims.append(PaperClaim(says, 1, count / len(with_ends)))
    heads = ("q", "from", "to", "between in print", "triangles", "that have it")
    return Evidence(tuple(claims), heads, tuple(rows))


def _have_pair(kinds: NDArray[np.uint8], first: int, second: int) -> NDArray[np.bool_]:
    """bool[T]: which triangles have a corner of each of two kinds, or two corners of one kind.

    Args:
        kinds: uint8[T, 3], the kinds of the corners of each triangle.
        first: a kind.
        second: another kind, or the same.
    """
    if first == second:
        return np.asarray((kinds == first).sum(axis=1) >= 2)
    return np.asarray((kinds == first).any(axis=1) & (kinds == second).any(axis=1))


def expansion_methods(_quick: bool) -> Evidence:
    """Table IV: measured."""
    q, racks = 19, 8
    base = build_topology("polarfly", {"q": q})
    growths = growth(base, racks)
    claims: list[PaperClaim] = []
    for step in growths:
        if step.method:
            claims += _claims_of_a_step(q, step)
    claims += _claims_of_several_steps(q, growths)
    for method in ("quadric", "fan"):
        links_kept = _share_of_links_kept(base, expand(base, method, racks).topology)
        says = f"{method}, {racks} clusters: no rewiring, the part of links that stay"
        claims.append(PaperClaim(says, 1, links_kept))
    heads = ("method", "clusters", "nodes", "least degree", "largest degree", "diameter", "mean")
    rows = tuple(
        (
            g.method or "as it was",
            g.racks,
            g.nodes,
            g.least_degree,
            g.largest_degree,
            g.diameter,
            g.mean_distance,
        )
        for g in growths
    )
    setup = (f"Of PolarFly with q = {q}, and 1 to {racks} copied clusters.",)
    return Evidence(tuple(claims), heads, rows, setup=setup)


def _claims_of_a_step(q: int, step: Growth) -> Iterator[PaperClaim]:
    """The claims about a network after one step of growth."""
    says = f"{step.method}, {step.racks} clusters"
    ports_added = step.largest_degree - (q + 1)
    quadric = step.method == "quadric"
    if quadric:
        per_port = (step.nodes - (q * q + q + 1)) / ports_added
        yield PaperClaim(f"{says}: (q+1)/2 nodes a port", (q + 1) / 2, per_port)
    else:
        yield PaperClaim(f"{says}: nodes, qn more", q * q + q + 1 + q * step.racks, step.nodes)
        yield PaperClaim(f"{says}: largest degree, n + 1 more", step.racks + 1, ports_added)
    yield PaperClaim(f"{says}: diameter", 2 if quadric else 3, or_nan(step.diameter))
    yield PaperClaim(f"{says}: average shortest path below 2", 2, or_nan(step.mean_distance), "<")


def _claims_of_several_steps(q: int, growths: Sequence[Growth]) -> Iterator[PaperClaim]:
    """The claims of Table IV on several steps of growth."""
    fans = [step for step in growths if step.method == "fan"]
    few, many = fans[0], fans[-1]
    nodes_per_port = (many.nodes - few.nodes) / (many.largest_degree - few.largest_degree)
    by_few, by_many = (q * fan.racks / (fan.racks + 1) for fan in (few, many))
    yield PaperClaim(
        f"fan, {few.racks} to {many.racks} clusters: about q nodes a port",
        q,
        nodes_per_port,
        interpretation="Read as of each further copy. The first one takes two ports, so that n"
        f" copies give qn/(n + 1) nodes a port: {by_few:.1f} with {few.racks}, {by_many:.1f}"
        f" with {many.racks}.",
    )
    degree_spread = {
        step.method: step.largest_degree - step.least_degree
        for step in growths
        if step.racks == many.racks
    }
    yield PaperClaim(
        f"degrees are uniform with fans, not with quadrics: largest less least, {many.racks}"
        " clusters",
        degree_spread["quadric"],
        degree_spread["fan"],
        "<",
        interpretation="Read as one beside the other; the text says near-uniform of fans.",
    )


def configurations(_quick: bool) -> Evidence:
    """Table V."""
    return table_evidence("polarfly-5")


def path_diversity(_quick: bool) -> Evidence:
    """Table VI: simple paths of every pair, counted."""
    claims: list[PaperClaim] = []
    rows = []
    for q in (5, 7, 9, 11, 13):
        topology = build_topology("polarfly", {"q": q})
        avoiding_counts = paths_around_the_middle(topology)
        for path_class in diversity(topology):
            claims += _path_claims(q, path_class, avoiding_counts)
            lengths = zip(path_class.fewest, path_class.most, strict=True)
            texts = [f"{low}" if low == high else f"{low} to {high}" for low, high in lengths]
            adjacency = "adjacent" if path_class.adjacent else "not adjacent"
            rows.append((q, adjacency, "-".join(path_class.ends), path_class.middle or "", *texts))
    heads = ("q", "", "ends", "between", "of 1", "of 2", "of 3", "of 4 links")
    return Evidence(tuple(claims), heads, tuple(rows))


def paths_around_the_middle(topology: Topology) -> dict[tuple[str, str, str], set[int]]:
    """How many paths of 3 links lead from a vertex to another one around the vertex between them.

    The two are not adjacent, and one vertex is adjacent to both. By their kinds, in the order of
    the kinds, and by that of the vertex between them: the different counts.
    """
    order = topology.graph.order
    joined = np.zeros((order, order), np.int64)
    joined[topology.graph.tails(), topology.graph.targets] = 1
    walks_of_2 = joined @ joined
    walks_of_3 = walks_of_2 @ joined
    counts: dict[tuple[str, str, str], set[int]] = {}
    names = [topology.kinds[kind] for kind in topology.kind.tolist()]
    for source, target in np.argwhere(np.triu(1 - joined, 1)).tolist():
        middle = int(np.argmax(joined[source] & joined[target]))
        # Walks over the middle go on to, or come from, a neighbour that it shares with an end.
        around = (
            walks_of_3[source, target] - walks_of_2[middle, target] - walks_of_2[source, middle]
        )
        low, high = sorted((source, target), key=lambda vertex: int(topology.kind[vertex]))
        counts.setdefault((names[low], names[high], names[middle]), set()).add(int(around))
    return counts


AROUND_READING = (
    "Of paths that avoid the vertex between both ends. Of all paths of 3 links there are q - 1"
    " where both ends are quadric, q where one is, else q + 1, or q where that vertex is quadric."
)
"""How the numbers of paths of 3 links are read."""
OF_FOUR_LINKS = (
    "Between vertices that are not adjacent there are, of 4 links, q² - nq(v) - nq(w) +"
    " 2[x quadric] where neither is quadric, q² - q - nq(w) where one is, (q - 1)² where both are;"
    " nq: quadric neighbours. The print has q - 1 too many of those with a quadric end; for q = 5"
    " it has 20, 22 and 24, and there are 16, 18 and 20."
)
"""The mistake in the printed numbers of paths of 4 links."""


def _path_claims(
    q: int, path_class: PathClass, avoiding_counts: Mapping[tuple[str, str, str], set[int]]
) -> Iterator[PaperClaim]:
    """The claims about how many paths of each length pairs of a class have.

    Args:
        q: the parameter of PolarFly.
        path_class: the class, with the counts of paths of its pairs.
        avoiding_counts: the result of `paths_around_the_middle`.
    """
    quadrics = path_class.ends.count("W")
    kinds = "-".join(path_class.ends) + (f" over {path_class.middle}" if path_class.middle else "")
    adjacency = "adjacent" if path_class.adjacent else "not adjacent"
    for length, printed in enumerate(_printed_paths(q, path_class), 1):
        if printed is None:
            continue
        counts = {path_class.fewest[length - 1], path_class.most[length - 1]}
        avoiding = length == 3 and not path_class.adjacent
        if avoiding:
            counts = avoiding_counts[(*path_class.ends, path_class.middle or "")]
        for computed in counts:
            yield PaperClaim(
                f"q = {q}, {adjacency}, {kinds}, {quadrics} quadric: paths of {length} links",
                printed,
                computed,
                interpretation=AROUND_READING if avoiding else "",
                mistake=OF_FOUR_LINKS if length == 4 else "",
            )


def _printed_paths(q: int, path_class: PathClass) -> tuple[int | None, ...]:
    """How many paths of 1 to 4 links the paper prints for a class; None where it prints nothing."""
    quadrics, over = path_class.ends.count("W"), path_class.middle == "W"
    if path_class.adjacent:
        return (1, 0, 0, q * q - q) if quadrics else (1, 1, 0, (q - 1) ** 2)
    paths_of_4 = {
        ("W", "W"): q * q - q,
        ("W", "V1"): q * q - 3,
        ("W", "V2"): q * q - 1,
        ("V1", "V1"): q * q - 2 if over else q * q - 4,
        ("V1", "V2"): q * q - 2,
        ("V2", "V2"): q * q,
    }
    return (None, 1, q if over else q - 1, paths_of_4[path_class.ends])
