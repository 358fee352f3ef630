"""The tables of PolarFly: A Cost-Effective and Flexible Low-Diameter Topology (Lakhotia, 2022)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import comb

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.analysis.growth import Growth, growth
from compilers.evaluation.analysis.path_diversity import PathClass, diversity
from compilers.families.polarfly import triangles
from compilers.topology.families import BASELINES, FAMILIES, build_topology
from compilers.topology.layout import layout
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.printed_tables import table_evidence

RADIXES = range(8, 129)
COMPARED: dict[str, tuple[str, Mapping[str, int | str | None], bool, bool | None]] = {
    "Fat tree": ("fat-tree", {"k": 4}, False, False),
    "Dragonfly": ("dragonfly", {"h": 2}, True, None),
    "HyperX": ("hyperx", {"sides": "4x4"}, True, True),
    "OFT": ("oft", {"q": 3}, False, True),
    "MLFM": ("mlfm", {"n": 4}, False, True),
    "Slim Fly": ("slimfly", {"q": 5}, True, True),
    "PolarFly": ("polarfly", {"q": 5}, True, True),
}
"""Table I: a small member of each network; whether it is direct, and of diameter 2, as printed."""


BETWEEN = {
    1: {("V1", "V1"): "V1", ("V1", "V2"): "V2", ("V2", "V2"): "V1"},
    3: {("V1", "V1"): "V2", ("V1", "V2"): "V1", ("V2", "V2"): "V2"},
}
"""Table III as printed: by q mod 4 and the kinds of two adjacent vertices, that between them."""


def feasibility(_quick: bool) -> Evidence:
    """Table I; full and partial support look alike in the text, so only support is judged."""
    from compilers.evaluation.analysis.distances import distribution

    claims, rows = [], []
    for name, (family, parameters, direct, short) in COMPARED.items():
        topology = build_topology(family, parameters)
        all_hosts = bool(topology.endpoints.all())
        diameter = distribution(topology).diameter or 0
        radixes = _radixes(family)
        grows = "by clusters" if family == "polarfly" else ""
        rows.append((name, "yes" if all_hosts else "no", diameter, radixes, grows))
        claims.append(PaperClaim(f"{name}: direct", float(direct), float(all_hosts)))
        claims.append(PaperClaim(f"{name}: flexible, radixes of 8 to 128", 2, radixes, ">="))
        if short is not None:
            claims.append(PaperClaim(f"{name}: diameter 2", float(short), float(diameter == 2)))
    heads = ("network", "direct", "diameter between hosts", "radixes 8 to 128", "expandable")
    return Evidence(tuple(claims), heads, tuple(rows))


def _radixes(family: str) -> int:
    known = FAMILIES.get(family) or BASELINES[family]
    return sum(any(True for _ in known.designs(radix)) for radix in RADIXES)


def inter_cluster_triangles(quick: bool) -> Evidence:
    """Table II, counted."""
    claims, rows = [], []
    for q in (5, 7, 9, 11) if quick else (5, 7, 9, 11, 13, 17, 19, 23, 25, 27, 31):
        topology = build_topology("polarfly", {"q": q})
        corners = triangles(topology)
        rack = layout(topology).rack[corners]
        outside = corners[(rack != rack[:, :1]).any(axis=1)]
        second = (topology.kind[outside] == topology.kinds.index("V2")).sum(axis=1)
        found = np.bincount(second, minlength=4).tolist()
        if q % 4 == 1:
            printed = [q * (q - 1) * (q - 5) // 24, 0, q * (q - 1) ** 2 // 8, 0]
        else:
            printed = [0, q * (q - 1) * (q - 3) // 8, 0, (q + 1) * q * (q - 1) // 24]
        for number, (said, count) in enumerate(zip(printed, found, strict=True)):
            claims.append(PaperClaim(f"q = {q}: triangles with {number} of V2", said, count))
        claims.append(PaperClaim(f"q = {q}: C(q, 3) in all", comb(q, 3), len(outside)))
        rows.append((q, *found))
    heads = ("q", "(v1, v1, v1)", "(v1, v1, v2)", "(v1, v2, v2)", "(v2, v2, v2)")
    return Evidence(tuple(claims), heads, tuple(rows))


def intermediate_kinds(quick: bool) -> Evidence:
    """Table III: the kind of the vertex between two adjacent ones, of every such pair."""
    claims, rows = [], []
    for q in (5, 7, 9, 11) if quick else (5, 7, 9, 11, 13, 17, 19, 23):
        topology = build_topology("polarfly", {"q": q})
        kinds = np.sort(topology.kind[triangles(topology)], axis=1)
        for ends, printed in BETWEEN[q % 4].items():
            having = kinds[_with_pair(kinds, *(topology.kinds.index(name) for name in ends))]
            wanted = sorted(topology.kinds.index(name) for name in (*ends, printed))
            alike = int((having == wanted).all(axis=1).sum())
            rows.append((q, *ends, printed if len(having) else "no such pair", len(having)))
            if len(having):
                says = f"q = {q}: triangles on {ends[0]} and {ends[1]} whose third is {printed}"
                claims.append(PaperClaim(says, len(having), alike))
    return Evidence(tuple(claims), ("q", "from", "to", "between", "triangles"), tuple(rows))


def _with_pair(kinds: NDArray[np.uint8], one: int, other: int) -> NDArray[np.bool_]:
    """bool[T]: triangles, uint8[T, 3] by the kinds of their corners, with two such corners."""
    if one == other:
        return np.asarray((kinds == one).sum(axis=1) >= 2)
    return np.asarray((kinds == one).any(axis=1) & (kinds == other).any(axis=1))


def expansion_methods(quick: bool) -> Evidence:
    """Table IV: measured."""
    q, racks = (7, 3) if quick else (19, 8)
    found = growth(build_topology("polarfly", {"q": q}), racks)
    claims: list[PaperClaim] = []
    for each in found:
        if each.method:
            claims += _expanded(q, each)
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
        for g in found
    )
    return Evidence(tuple(claims), heads, rows)


def _expanded(q: int, each: Growth) -> Iterator[PaperClaim]:
    says, more = f"{each.method}, {each.racks} clusters", each.largest_degree - (q + 1)
    quadric = each.method == "quadric"
    if quadric:
        per_port = (each.nodes - (q * q + q + 1)) / more
        yield PaperClaim(f"{says}: (q+1)/2 nodes a port", (q + 1) / 2, per_port)
    else:
        yield PaperClaim(f"{says}: nodes, qn more", q * q + q + 1 + q * each.racks, each.nodes)
        yield PaperClaim(f"{says}: largest degree, n + 1 more", each.racks + 1, more)
    yield PaperClaim(f"{says}: diameter", 2 if quadric else 3, each.diameter or 0)
    yield PaperClaim(f"{says}: average shortest path below 2", 2, each.mean_distance or 9, "<=")


def configurations(_quick: bool) -> Evidence:
    """Table V."""
    return table_evidence("polarfly-5")


def path_diversity(quick: bool) -> Evidence:
    """Table VI: simple paths of every pair, counted."""
    claims: list[PaperClaim] = []
    rows = []
    for q in (5, 7) if quick else (5, 7, 9, 11, 13):
        for found in diversity(build_topology("polarfly", {"q": q})):
            claims += _paths(q, found)
            lengths = zip(found.fewest, found.most, strict=True)
            texts = [f"{low}" if low == high else f"{low} to {high}" for low, high in lengths]
            near = "adjacent" if found.adjacent else "not adjacent"
            rows.append((q, near, "-".join(found.ends), found.middle or "", *texts))
    heads = ("q", "", "ends", "between", "of 1", "of 2", "of 3", "of 4 links")
    return Evidence(tuple(claims), heads, tuple(rows))


def _paths(q: int, found: PathClass) -> Iterator[PaperClaim]:
    quadrics = found.ends.count("W")
    kinds = "-".join(found.ends) + (f" over {found.middle}" if found.middle else "")
    near = "adjacent" if found.adjacent else "not adjacent"
    for length, printed in enumerate(_printed(q, found), 1):
        if printed is None:
            continue
        three = "The number depends on the ends, not only on x: both quadric q - 1, one quadric q, "
        three += "neither q + 1, or q where x is quadric."
        four = "Of 4 links there are q² - nq(v) - nq(w) + 2[x quadric] where neither is quadric, "
        four += "q² - q - nq(w) where one is, (q - 1)² where both are; nq: quadric neighbours."
        for computed in {found.fewest[length - 1], found.most[length - 1]}:
            yield PaperClaim(
                f"q = {q}, {near}, {kinds}, {quadrics} quadric: paths of {length} links",
                printed,
                computed,
                mistake={3: three, 4: four}.get(length, ""),
            )


def _printed(q: int, found: PathClass) -> tuple[int | None, ...]:
    quadrics, over = found.ends.count("W"), found.middle == "W"
    if found.adjacent:
        return (1, 0, 0, q * q - q) if quadrics else (1, 1, 0, (q - 1) ** 2)
    four = {
        ("W", "W"): q * q - q,
        ("W", "V1"): q * q - 3,
        ("W", "V2"): q * q - 1,
        ("V1", "V1"): q * q - 2 if over else q * q - 4,
        ("V1", "V2"): q * q - 2,
        ("V2", "V2"): q * q,
    }
    return (0, 1, q if over else q - 1, four[found.ends])
