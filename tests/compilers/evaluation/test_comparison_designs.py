"""What `design` says by formula, against graphs that are built."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.link_load import uniform
from compilers.evaluation.comparison.candidates import candidate, packing
from compilers.evaluation.comparison.designs import (
    design_key,
    designs_near_radix,
    designs_of_radixes,
    designs_of_smallest_radix,
    families,
    largest_designs,
    rank_candidates,
)
from compilers.evaluation.comparison.formulas import ESTIMATE, EXACT, formulas
from compilers.evaluation.comparison.prices import prices
from compilers.topology.families import BASELINES, FAMILIES, family_of
from compilers.topology.layout import layout, links_between
from inventory.problems import InputError

PRICES = prices()
OURS = [(name, q) for name in ("polarfly", "pn", "oft") for q in (2, 5, 8)]
STARS = [
    (2, "inductive-quad", 3),
    (3, "inductive-quad", 4),
    (4, "inductive-quad", 7),
    (5, "inductive-quad", 8),
    (4, "paley", 2),
    (3, "paley", 4),
    (5, "complete", 1),
    (2, "complete", 4),
]


def design_of(family: str, radix: int, **wanted: object):
    family_ = FAMILIES.get(family) or BASELINES[family]
    for design in family_.designs(radix):
        if all(design.parameters[key] == value for key, value in wanted.items()):
            return design
    raise LookupError(family)


def radix_of(family: str, q: int) -> int:
    return 2 * (q + 1) if family == "oft" else q + 1


@pytest.mark.parametrize(("family", "q"), OURS)
def test_formulas_are_exact(family, q):
    design = design_of(family, radix_of(family, q))
    known = formulas(design)
    topology = FAMILIES[family].build({"q": q})
    load, distances = uniform(topology), distribution(topology)
    assert known.basis == EXACT
    assert known.design.endpoints == topology.endpoints.sum()
    assert known.leaf_degree == topology.graph.degrees[topology.endpoints].max()
    assert known.design.host_diameter == distances.diameter
    assert known.mean_distance == pytest.approx(distances.mean, abs=1e-12)
    assert known.utilisation == pytest.approx(load.utilisation, abs=1e-12)
    full = known.full_throughput_hosts
    assert full == pytest.approx(load.full_throughput_hosts, abs=1e-12)


@pytest.mark.parametrize(("q", "supernode", "degree"), STARS)
def test_polarstar_distances_are_exact(q, supernode, degree):
    design = design_of("polarstar", q + 1 + degree, q=q, supernode=supernode)
    topology = FAMILIES["polarstar"].build(design.parameters)
    found = distribution(topology)
    assert formulas(design).mean_distance == pytest.approx(found.mean, abs=1e-12)


def test_no_formula_is_given_for_supernodes_whose_members_differ_in_degree():
    given = {"q": 3, "supernode": "bdf", "degree": 2}
    assert FAMILIES["polarstar"].mean_distance(given) is None
    assert FAMILIES["polarstar"].utilisation(given) is None


@pytest.mark.parametrize(("q", "supernode", "degree"), STARS)
def test_polarstar_utilisation_is_near(q, supernode, degree):
    design = design_of("polarstar", q + 1 + degree, q=q, supernode=supernode)
    known = formulas(design)
    measured = uniform(FAMILIES["polarstar"].build(known.design.parameters)).utilisation
    assert known.basis == ESTIMATE
    assert 0.94 < known.utilisation / measured < (1.23 if supernode == "paley" else 1.08)


@pytest.mark.parametrize("q", [3, 4, 7])
def test_racks_of_polarfly_are_the_modules(q):
    topology = FAMILIES["polarfly"].build({"q": q})
    racks = links_between(topology.graph, layout(topology, "fans"))
    (modules,) = family_of("polarfly").modules({"q": q})
    assert modules.electrical(1) == racks.trace()
    assert modules.bundles == (np.triu(racks, 1) > 0).sum()
    pairs = racks[1, 2] if len(racks) > 2 else modules.between
    assert modules.between == pairs
    assert modules.count + (modules.rest > 0) == len(racks)
    assert modules.count * modules.size + modules.rest == topology.graph.order


def test_subplanes_are_the_modules_of_pn():
    q = 4
    topology = FAMILIES["pn"].build({"q": q})
    racks = links_between(topology.graph, layout(topology))
    modules = next(family_of("pn").modules({"q": q}))
    assert (modules.electrical(1), modules.count) == (racks.trace(), len(racks))


@pytest.mark.parametrize("q", [3, 4])
def test_racks_of_polarfly_twice_are_modules_of_pn(q):
    plane, graph = FAMILIES["polarfly"].build({"q": q}), FAMILIES["pn"].build({"q": q}).graph
    rack, u, v = layout(plane, "fans").rack, *graph.edges().T
    order = plane.graph.order
    inside = (rack[u % order] == rack[v % order]).sum()
    *_, modules = family_of("pn").modules({"q": q})
    assert modules.electrical(1) == inside


@pytest.mark.parametrize(
    ("q", "supernode", "degree"), [(4, "inductive-quad", 3), (3, "paley", 4), (5, "complete", 3)]
)
def test_supernodes_and_clusters_are_modules(q, supernode, degree):
    topology = FAMILIES["polarstar"].build({"q": q, "supernode": supernode, "degree": degree})
    own, clusters = family_of("polarstar").modules(topology.parameters)
    u, v = topology.graph.edges().T
    assert own.electrical(1) == (u // own.size == v // own.size).sum()
    rack = layout(FAMILIES["polarfly"].build({"q": q}), "fans").rack
    assert clusters.electrical(1) == (rack[u // own.size] == rack[v // own.size]).sum()
    assert own.bundles == FAMILIES["polarfly"].build({"q": q}).graph.size


@pytest.mark.parametrize(
    ("family", "parameters", "size"),
    [
        ("slimfly", {"q": 7}, 7),
        ("slimfly", {"q": 8}, 8),
        ("dragonfly", {"h": 3, "a": 6, "groups": 19}, 6),
        ("megafly", {"h": 3, "a": 6, "groups": 10}, 6),
        ("hyperx", {"sides": "4x5x6"}, 30),
        ("hyperx", {"sides": "6x7"}, 7),
        ("bundlefly", {"q": 4, "degree": 2}, 5),
    ],
)
def test_modules_of_baselines(family, parameters, size):
    graph = BASELINES[family].build(parameters).graph
    found = {each.size: each for each in family_of(family).modules(parameters)}[size]
    u, v = graph.edges().T
    assert found.electrical(1) == (u // size == v // size).sum()
    assert found.size * found.count == graph.order


def test_groups_are_as_near_to_the_wanted_hosts_as_can_be():
    design = design_of("dragonfly", 20, h=7)
    parameters = design.parameters
    packed = packing(design, 7, 500)
    assert (packed.size, packed.groups, packed.electrical) == (70, 20, 9205)
    graph = BASELINES["dragonfly"].build(parameters).graph
    u, v = graph.edges().T
    assert (u // 70 == v // 70).sum() == 9205


def prime_powers(limit: int) -> set[int]:
    primes = [p for p in range(2, limit) if all(p % d for d in range(2, p))]
    return {p**n for p in primes for n in range(1, 11) if p**n < limit}


def test_the_largest_slim_fly_is_larger_at_some_radixes():
    """As docs/comparison.md says."""
    radixes, names = range(3, 129), ("polarfly", "slimfly")
    designs = list(designs_of_radixes(radixes, among=families(names)))
    polarfly, slimfly = (
        [max(d.nodes for d in designs if d.family == name and d.radix <= r) for r in radixes[2:]]
        for name in names
    )
    larger = [r for r, p, s in zip(radixes[2:], polarfly, slimfly, strict=True) if s > p]
    assert len(larger) == 15
    assert {7, 19, 37} <= {*larger}


def test_the_largest_polarstar_at_every_radix():
    """By formulas of our own here; Paley wins at four radixes."""
    powers, best = prime_powers(300), {}
    for radix in range(8, 129):
        for q in powers:
            d, n = radix - 1 - q, q * q + q + 1
            if d >= 1 and d % 4 in (0, 3):
                best.setdefault(radix, {})[q, "inductive-quad"] = n * (2 * d + 2)
            if d >= 1 and (2 * d + 1) in powers and (2 * d + 1) % 4 == 1:
                best.setdefault(radix, {})[q, "paley"] = n * (2 * d + 1)
    found = largest_designs(designs_of_radixes(range(8, 129), among=families(["polarstar"])))
    winners = {}
    for supernode in ("inductive-quad", "paley"):
        wanted = {
            radix: max(size for (_, name), size in sizes.items() if name == supernode)
            for radix, sizes in best.items()
            if any(name == supernode for _, name in sizes)
        }
        ours = {d.radix: d.nodes for d in found if d.supernode == supernode}
        assert ours == wanted
        winners[supernode] = ours
    iq, paley = winners["inductive-quad"], winners["paley"]
    assert sorted(iq) == list(range(8, 129))
    assert [radix for radix in sorted(iq) if paley.get(radix, 0) > iq[radix]] == [23, 50, 56, 80]


def test_nearest_stand_in_for_one_radix_only():
    assert {d.radix for d in designs_near_radix(15) if d.family == "polarfly"} == {14}
    assert {d.radix for d in designs_of_radixes([15])} == {15}


@settings(max_examples=10)
@given(st.integers(1, 200_000))
def test_reaching_takes_the_smallest_radix(nodes):
    found = designs_of_smallest_radix(nodes, families(["polarfly", "polarstar", "slimfly"]))
    assert {design_key(d)[1] for d in found if d.family == "polarstar"} == {
        "inductive-quad",
        "paley",
        "complete",
    }
    for design in found:
        assert design.nodes >= nodes
        family = FAMILIES.get(design.family) or BASELINES[design.family]
        for radix in range(max(2, design.radix - 3), design.radix):
            smaller = [
                d.nodes for d in family.designs(radix) if design_key(d) == design_key(design)
            ]
            assert all(size < nodes for size in smaller)


def test_every_baseline_with_designs_is_compared():
    found = {d.family for d in designs_near_radix(24, among=families(baselines=True))}
    assert found == ({*FAMILIES, *BASELINES} - {"demi-pn", "jellyfish"})


def test_ranked_puts_the_cheap_first_and_the_unknown_last():
    found = [candidate(d, PRICES) for d in designs_near_radix(24, among=families(baselines=True))]
    costs = [each.cost.dollars for each in rank_candidates(found, "cost_per_host")]
    assert costs == sorted(costs)
    means = [each.figures.mean_distance for each in rank_candidates(found, "mean_distance")]
    known = [mean for mean in means if mean is not None]
    assert None in means
    assert means[: len(known)] == sorted(known)
    nodes = [each.design.nodes for each in rank_candidates(found, "nodes")]
    assert nodes == sorted(nodes, reverse=True)


def test_hosts_hold_full_throughput():
    for design in designs_near_radix(32, among=families(baselines=True)):
        found = candidate(design, PRICES)
        if found.subscription is not None and found.hosts > 1:
            assert found.subscription <= 1.005 + 1e-9


def test_prices_of_a_file(tmp_path):
    file = tmp_path / "prices.yaml"
    file.write_text("watts_per_port: 5.6\noptical_per_gbps: 1\n")
    design = design_of("polarfly", 32)
    plain, dear = candidate(design, PRICES), candidate(design, prices(file))
    assert dear.cost.watts == pytest.approx(2 * plain.cost.watts)
    assert dear.cost.dollars < plain.cost.dollars
    assert prices(file).optical(5) == 1


def test_optical_price_between_two_sizes():
    assert PRICES.optical(10_000) == 7.7432
    assert PRICES.optical(17_500) == pytest.approx((7.7432 + 7.9178) / 2)
    assert (PRICES.optical(1), PRICES.optical(10**6)) == (7.7432, 7.9178)


def test_wrong_prices_are_all_named(tmp_path):
    file = tmp_path / "prices.yaml"
    file.write_text("watts_per_prot: 3\nlink_gbps: 0\noptical_per_gbps: {many: 3}\n")
    with pytest.raises(InputError) as error:
        prices(file)
    texts = [str(problem) for problem in error.value.problems]
    assert [text.split(": ")[0].rpartition(":")[2] for text in texts] == ["1", "2", "3"]
    assert "did you mean watts_per_port?" in texts[0]
