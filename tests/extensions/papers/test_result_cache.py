"""Points that are kept: a figure that was stopped goes on where it was, and can be checked."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise, permutations
from math import isnan, nan
from pathlib import Path
from types import ModuleType

import networkx as nx
import numpy as np
import pytest

import polarfab
from compilers.demand.fluid import Fluid
from compilers.evaluation.saturation import share_by_tables
from compilers.evaluation.traffic import PATTERNS
from compilers.topology.families import build_topology
from extensions.papers import result_cache
from extensions.papers.catalogue import exhibit
from extensions.papers.curve_presentation import flit_setup_lines
from extensions.papers.curve_runs import WholeRuns, by_flits
from extensions.papers.curve_values import (
    largest_accepted_load,
    largest_sustained_load,
    latency_at,
    located_accepted_load,
    located_sustained_load,
    undecided_if_near,
    with_missing_points,
)
from extensions.papers.exhibit import PaperClaim
from extensions.papers.fluid_shares import minimal_share
from extensions.papers.latency_curves import simulated_curve, simulated_point
from extensions.papers.paper_fabric import PaperFabric
from extensions.papers.polarfly import polarfly_fig8, polarfly_fig11
from extensions.papers.polarfly.polarfly_curves import PERMUTATIONS
from extensions.papers.polarfly.polarfly_fig8 import PEAK_BEHIND_THE_KNEE
from extensions.papers.polarfly.polarfly_fig9 import two_pairs_share_a_link
from extensions.papers.polarstar import polarstar_simulation
from extensions.papers.result_cache import caching_in, only_from, points_digest
from extensions.simulation.latency_curve import LatencyCurve
from extensions.simulation.simulated_network import HostTraffic
from inventory.problems import InputError
from manual.papers import WHOLE, of_kept_points

FABRIC = PaperFabric({"family": "polarfly", "q": 3}, 2, "MIN")


FEW = WholeRuns((0.1, 0.3), 2, {"drain": 2_000}, refines_loads=True)


def lines_of(file: Path, *words: str) -> str:
    """The first line, and those that have all words."""
    head, *lines = file.read_text().splitlines(keepends=True)
    return head + "".join(line for line in lines if all(word in line for word in words))


def test_points_are_taken_whatever_code_they_are_of(tmp_path: Path) -> None:
    whole, file = curve(tmp_path), tmp_path / "points.csv"
    file.write_text(file.read_text().replace(points_digest(), "other"))
    with only_from(file):
        assert simulated_curve(FABRIC, "uniform", quick=False, runs=FEW) == whole
    file.write_text(lines_of(file, "uniform,0.1,"))
    with only_from(file), pytest.raises(InputError, match=r"uniform, load 0.3, seed 0 of \{"):
        simulated_curve(FABRIC, "uniform", quick=False, runs=FEW)


def test_what_needs_points_that_are_not_kept_is_not_computed(tmp_path: Path) -> None:
    """Of a load with one of two seeds, that one counts."""
    whole, file = curve(tmp_path), tmp_path / "points.csv"
    file.write_text(lines_of(file, "uniform,0.1,1,"))
    part = replace(FEW, may_lack_points=True)
    with only_from(file):
        (point,) = simulated_curve(FABRIC, "uniform", quick=False, runs=part).points
        nothing = simulated_curve(FABRIC, "tornado", quick=False, runs=part)
    assert (point.offered, point.runs, whole.points[0].runs) == (0.1, 1, 2)
    values = (
        largest_accepted_load(nothing),
        largest_sustained_load(nothing),
        latency_at(nothing, 0.1),
    )
    assert all(map(isnan, values))
    claims = [PaperClaim("as much", 0.1, point.accepted), PaperClaim("more", 0.1, values[0], ">=")]
    claims.append(PaperClaim("less", values[1], 0.1, "<="))
    claims = [*with_missing_points(claims)]
    assert [claim.verdict for claim in claims[1:]] == ["not computed"] * 2
    assert [claim.printed for claim in claims] == [0.1, 0.1, None]
    assert claims[0].computed == point.accepted


def test_saturation_is_told_by_loads_on_both_sides_of_it_that_are_near() -> None:
    point = curve(None).points[0]

    def part(*loads: float, held: float) -> LatencyCurve:
        """A curve with points at these loads, of which those up to `held` are sustained."""
        points = (replace(point, offered=o, accepted=o, sustained=o <= held) for o in loads)
        return LatencyCurve(tuple(points))

    for loads, held in {(0.8, 0.9): 0.8, (0.9, 0.95): 0.95, (0.1, 0.2): 0.0}.items():
        assert located_sustained_load(part(*loads, held=held)) == held
    for loads, held in {(0.5, 0.7): 0.5, (0.1, 0.8): 0.8, (0.2, 0.3): 0.0, (0.9,): 0.0}.items():
        assert isnan(located_sustained_load(part(*loads, held=held)))
        assert isnan(located_accepted_load(part(*loads, held=held)))
        assert largest_accepted_load(part(*loads, held=held)) == loads[-1]
    # A load below that is not sustained leaves the largest sustained load as it is.
    low, middle, high = part(0.4, 0.5, 0.6, held=0.5).points
    late = LatencyCurve((replace(low, sustained=False), middle, high))
    assert (located_sustained_load(late), largest_sustained_load(late)) == (0.5, 0.0)
    key = (("tornado", "PF", "UGAL_PF"), late)
    expected = "Not sustained, where a larger load is: tornado PF UGAL_PF 0.4."
    assert flit_setup_lines([FABRIC], False, [key])[-1] == expected
    # The largest accepted load needs the last load, or a smaller one behind it.
    rising = part(0.8, 0.9, held=0.8)
    assert isnan(located_accepted_load(rising))
    low, high = rising.points
    assert located_accepted_load(LatencyCurve((low, replace(high, accepted=0.7)))) == 0.8
    assert located_accepted_load(part(0.8, 0.9, 0.95, held=0.8)) == 0.95
    # What is accepted before a deadlock is no throughput.
    stuck = LatencyCurve((low, replace(high, deadlock=(1, 2))))
    assert largest_accepted_load(stuck) == 0.8
    assert isnan(largest_accepted_load(LatencyCurve(stuck.points[1:])))


def test_the_order_of_near_loads_is_not_told() -> None:
    """One seed does not tell .897 from .89; the reverse of an order needs more, too."""

    def claim(theirs: float) -> PaperClaim:
        """That .897 is more."""
        return undecided_if_near(PaperClaim("more", theirs, 0.897, ">="))

    verdicts = {theirs: claim(theirs).verdict for theirs in (0.85, 0.89, 0.91, 0.93)}
    expected = ["equal", "not computed", "not computed", "contradicts"]
    assert [*verdicts.values()] == expected
    assert claim(0.89).why.startswith("0.897 against 0.89. ")
    assert isnan(claim(nan).printed or 0.0)


@pytest.fixture
def no_hottest_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hottest links, which take long, allow nothing."""
    for module in (polarfly_fig8, polarfly_fig11, polarstar_simulation):
        monkeypatch.setattr(module, "minimal_share", lambda *_: 0.0)


@pytest.mark.usefixtures("no_hottest_links")
def test_a_load_that_was_tried_is_not_the_printed_one_to_its_last_digit() -> None:
    """It is a reading, which names the loads that are not sustained."""
    claims = {claim.statement: claim for claim in of_kept_points(exhibit("polarfly-fig8")).claims}
    claim = claims["UGAL sustains up to 50 %: tornado"]
    assert (claim.verdict, claim.why) == (
        "reading",
        "Read as of the loads that were simulated: with seed 0 it sustains 0.5 and not 0.6. Between"
        " them it may saturate anywhere.",
    )
    for other in (0.49, 0.51):
        assert replace(claim, printed=other).verdict == "differs"


@pytest.mark.usefixtures("no_hottest_links")
def test_a_latency_at_a_load_that_is_not_sustained_is_a_reading() -> None:
    """UGAL_PF does not sustain .4 of tornado traffic, and its latency there was "equal"."""
    claims = {claim.statement: claim for claim in of_kept_points(exhibit("polarfly-fig8")).claims}
    found = {
        pattern: claims[f"UGAL_PF takes longer than UGAL, load 0.4: {pattern}"]
        for pattern in ("permutation", "tornado")
    }
    assert {pattern: claim.verdict for pattern, claim in found.items()} == {
        "permutation": "equal",
        "tornado": "reading",
    }
    assert found["tornado"].why == "With seed 0 UGAL_PF does not sustain this load."


@pytest.mark.usefixtures("no_hottest_links")
def test_a_peak_that_may_lie_between_two_loads_tells_no_order() -> None:
    """Jellyfish sustains .4 of a permutation and not .5, where it accepts less. What it accepts at
    .4 was held against what PolarFly accepts at .5."""
    claims = {claim.statement: claim for claim in of_kept_points(exhibit("polarfly-fig8")).claims}
    claim = claims["outperforms JF, UGAL_PF against UGAL: permutation"]
    assert claim.verdict == "not computed"
    assert "sustains 0.4 and not 0.5" in claim.why
    for name in ("SF", "JF", "DF2"):
        assert claims[f"outperforms {name}, UGAL_PF against UGAL: uniform"].verdict == "reading"


def test_slower_to_adapt_is_no_longer_way() -> None:
    """A hop more under perm2hop, which UGAL has too, was part of the latency that was compared."""
    claims = of_kept_points(exhibit("polarfly-fig9")).claims
    (claim,) = [claim for claim in claims if "slower to adapt" in claim.statement]
    assert (claim.printed, claim.computed) == (
        pytest.approx(5.15, abs=0.05),
        pytest.approx(22.0, abs=0.1),
    )


def test_the_hottest_links_of_slim_fly_and_jellyfish_are_of_our_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was said of what is simulated only."""
    shares = {"slimfly": 0.8, "jellyfish": 0.5}
    monkeypatch.setattr(
        polarfly_fig8,
        "minimal_share",
        lambda text, _pattern: shares.get(PaperFabric.of_text(text).topology["family"], 1.0),
    )
    claims = {claim.statement: claim for claim in of_kept_points(exhibit("polarfly-fig8")).claims}
    for name in ("SF", "JF"):
        claim = claims[f"outperforms {name}, MIN against MIN: uniform, by the hottest link"]
        assert claim.verdict == "reading"
        assert "by our tables" in claim.why


@pytest.mark.usefixtures("no_hottest_links")
def test_minimal_routes_of_a_permutation_carry_no_more_than_is_printed() -> None:
    """A slack of .002 let .0603 pass as 1/17, too."""
    claims = of_kept_points(exhibit("polarfly-fig8")).claims
    simulated = [
        claim for claim in claims if claim.statement.startswith("MIN carries at most 1/p: ")
    ]
    (claim,) = [claim for claim in simulated if claim.statement.endswith(" permutation")]
    assert claim.verdict == "equal"
    assert replace(claim, printed=1 / 17).verdict == "contradicts"


def test_loads_of_a_curve_that_is_simulated_in_part_are_listed() -> None:
    points = curve(None).points
    cycles, loads, network, longer, part = flit_setup_lines(
        [FABRIC], False, [(("uniform", "PF", "MIN"), LatencyCurve(points))]
    )
    assert "flits move one by one" in cycles
    assert "3 × 200 measured" in loads
    assert network == "polarfly q=3 2 hosts a switch: MIN."
    assert longer.endswith("3 × 500 cycles measured.")
    expected = ", ".join(f"{point.offered:g}" for point in points)
    assert part == f"Simulated in part, at these loads: uniform PF MIN {expected}."
    runs = by_flits("tornado", "UGAL"), by_flits("uniform", "UGAL"), by_flits("tornado", "MIN")
    assert [one.settings["period"] for one in runs] == [500, 200, 200]


@pytest.mark.parametrize(
    ("fabric", "pattern"),
    [
        (PaperFabric({"family": "polarfly", "q": 5}, 3, "MIN", grown="fan:1"), "uniform"),
        (PaperFabric({"family": "polarfly", "q": 5}, 3, "MIN"), "tornado"),
    ],
)
def test_the_hottest_link_is_that_of_throughput(fabric: PaperFabric, pattern: str) -> None:
    expected = share_by_tables(fabric.build(), pattern, fabric.hosts)
    assert minimal_share(fabric.text(), pattern) == pytest.approx(expected)
    assert expected < 1


@pytest.mark.parametrize(("h", "a", "hosts"), [(2, 4, 2), (2, 3, 3), (6, 12, 6), (27, 6, 10)])
def test_dragonfly_goes_by_its_usual_routes(h: int, a: int, hosts: int) -> None:
    """By our tables DF1's hottest link was full at .654, and PolarFly outperformed it. A local link
    has 1 + 2ah pairs by usual routes, a global one a²."""
    dragonfly = PaperFabric({"family": "dragonfly", "h": h, "a": a}, hosts, "MIN")
    pairs = max(1 + 2 * a * h, a * a)
    expected = min(1, (a * (a * h + 1) - 1) / (hosts * pairs))
    assert minimal_share(dragonfly.text(), "uniform") == pytest.approx(expected)


def test_polarstar_goes_by_the_rule_of_its_paper() -> None:
    """Each pair of a small PolarStar, link by link; within a supernode over all shortest paths."""
    parameters: dict[str, int | str] = {"q": 3, "supernode": "inductive-quad", "degree": 3}
    topology = build_topology("polarstar", parameters)
    graph: nx.Graph = nx.Graph(topology.graph.edges().tolist())
    order, size = topology.graph.order, topology.hierarchy
    load: dict[tuple[int, int], float] = {}
    for source, goal in permutations(range(order), 2):
        if source // size == goal // size:
            paths = list(nx.all_shortest_paths(graph, source, goal))
        else:
            paths = [polarfab.minimal_path("polarstar", source, goal, **parameters)]
        for path in paths:
            for arc in pairwise(path):
                load[arc] = load.get(arc, 0) + 1 / len(paths)
    fabric = PaperFabric({"family": "polarstar", **parameters}, 4, "MIN")
    expected = (order - 1) / (4 * max(load.values()))
    assert expected < 1
    assert minimal_share(fabric.text(), "uniform") == pytest.approx(expected)


@pytest.mark.usefixtures("no_hottest_links")
def test_what_is_routed_by_our_tables_is_not_equal() -> None:
    """PolarStar, Dragonfly, Slim Fly and Jellyfish take other minimal paths than the papers'."""
    for name in ("polarfly-fig8", "polarstar-fig9", "polarstar-fig10", "polarstar-fig11"):
        stars = ("PS", "DF", "SF", "JF") if name == "polarfly-fig8" else ("PS", "DF")
        equal = [c.statement for c in of_kept_points(exhibit(name)).claims if c.verdict == "equal"]
        assert [says for says in equal if any(one in says for one in stars)] == []


@pytest.mark.usefixtures("no_hottest_links")
def test_the_same_measure_is_comparable_and_outperforms() -> None:
    """Their largest loads lie between .85 and .9, where nothing was simulated: no order is told.
    By usual routes a detour of Dragonfly carries more than PolarFly's.
    """
    evidence = of_kept_points(exhibit("polarfly-fig8"))
    claims = {claim.statement: claim for claim in evidence.claims}
    claim = claims["and outperforms UGAL on PolarFly: largest throughputs"]
    assert claim.verdict == "not computed"
    assert claim.why == f"0.849 against 0.892. {PEAK_BEHIND_THE_KNEE}"
    for says in ("MIN against MIN: uniform", "UGAL_PF against UGAL: permutation"):
        assert claims[f"outperforms DF1, {says}"].verdict == "not computed"


@pytest.mark.usefixtures("no_hottest_links")
def test_a_simulation_may_accept_more_than_the_hottest_link_allows() -> None:
    """It was said to allow more: Jellyfish sustains .6, and its hottest link is full at .549."""
    points = [
        each.result
        for each in result_cache.cached_results(WHOLE["polarfly-fig8"])
        if each.key.pattern == "uniform" and '"jellyfish"' in each.key.fabric
    ]
    assert max(point.accepted for point in points) > 0.549
    assert "may be more or less" in polarfly_fig11.NO_QUEUES


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("polarfly-fig8", polarfly_fig8),
        ("polarfly-fig9", None),
        ("polarstar-fig9", polarstar_simulation),
    ],
)
def test_a_quick_run_has_no_text_on_networks_of_the_papers_size(
    monkeypatch: pytest.MonkeyPatch, name: str, module: ModuleType | None
) -> None:
    """It had loads of q = 31, hottest links of networks of the papers, and 1/16 for 16 hosts.

    Figure 9 of PolarFly is simulated; for others a curve of one small network stands for all.
    """
    if module:
        small = simulated_curve(FABRIC, "uniform", quick=True)
        monkeypatch.setattr(module, "simulated_curve", lambda *_, **__: small)
    claims = exhibit(name).compute(True).claims
    texts = [f"{claim.interpretation} {claim.reason}" for claim in claims]
    foreign = ("q = 31", "875", ".654", ".785", "1/16", "1/32")
    assert len(texts) > 10
    assert [text for text in texts if any(number in text for number in foreign)] == []


def test_the_only_link_between_two_groups_carries_what_one_sends_the_other() -> None:
    """In a dragonfly of h = 2 three of the four switches of a group, with two hosts each, are three
    links from switches of the other."""
    dragonfly = PaperFabric({"family": "dragonfly", "h": 2, "a": 4}, 2, "MIN", group=4)
    assert minimal_share(dragonfly.text(), "adversarial") == pytest.approx(1 / 6)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.usefixtures("no_hottest_links")
def test_the_manual_shows_whole_sizes_by_kept_points(name: str) -> None:
    evidence = of_kept_points(exhibit(name))
    simulated = [claim for claim in evidence.claims if "by the hottest link" not in claim.statement]
    evidence = replace(evidence, claims=tuple(simulated))
    expected = {
        "polarfly-fig8": "reading",
        "polarfly-fig9": "differs",
        "polarfly-fig10": "reading",
        "polarstar-fig9": "not computed",
        "polarstar-fig10": "not computed",
        "polarstar-fig11": "reading",
    }
    assert evidence.verdict == expected[name]
    codes = {point.code for point in result_cache.cached_results(WHOLE[name])}
    assert all(code in evidence.setup[-1] for code in codes)


def test_behind_saturation_packets_of_ugal_pf_take_detours_and_fewer_are_accepted() -> None:
    """In figure 8 UGAL accepts more there; up to the load before, UGAL_PF is sooner and sustains
    as much."""
    points = {
        (json.loads(each.key.fabric)["routes"], each.key.load): each.result
        for each in result_cache.cached_results(WHOLE["polarfly-fig8"])
        if each.key.pattern == "uniform" and '"polarfly"' in each.key.fabric
    }
    ours, theirs = points["UGAL_PF", 0.95], points["UGAL", 0.95]
    assert (round(ours.accepted, 2), round(theirs.accepted, 2)) == (0.65, 0.89)
    assert PEAK_BEHIND_THE_KNEE.count(".65 at .95") == PEAK_BEHIND_THE_KNEE.count(".89") == 1
    assert ours.mean_hops == pytest.approx(2.96, abs=0.01)
    assert points["UGAL_PF", 0.8].mean_hops == pytest.approx(2.02, abs=0.01)
    assert points["UGAL_PF", 0.85].sustained
    assert not points["UGAL_PF", 0.9].sustained


def test_minimal_paths_of_two_pairs_share_a_link_under_perm2hop() -> None:
    """So figure 9's MIN is 1/32 and not the paper's 1/16: with 16 hosts, one pair of switches has
    16 flows."""
    topology = build_topology("polarfly", {"q": 31})
    goals = HostTraffic.of_pattern("perm2hop", topology, 16, 0).destination
    near = [set(row[row >= 0].tolist()) for row in topology.graph.padded()]
    links = Counter[tuple[int, int]]()
    for here, goal in enumerate(goals.tolist()):
        if here != goal:
            (middle,) = near[here] & near[goal]
            links.update([(here, middle), (middle, goal)])
    assert max(links.values()) == 2
    claims = of_kept_points(exhibit("polarfly-fig9")).claims
    found = {claim.statement: claim for claim in claims if claim.verdict == "differs"}
    saturation = found.pop("perm2hop: almost 50 % with UGAL_PF")
    assert saturation.computed == 0.5625
    assert saturation.why.startswith("It sustains 0.55 and not 0.575; ")
    assert saturation.why.endswith("The introduction has 50 to 66 %.")
    assert found.keys() == {"perm2hop: MIN withstands 5 %"}
    assert found["perm2hop: MIN withstands 5 %"].computed == pytest.approx(1 / 32, abs=0.002)
    assert found["perm2hop: MIN withstands 5 %"].why == two_pairs_share_a_link(hosts=16)


@pytest.mark.usefixtures("no_hottest_links")
def test_a_load_above_one_that_is_not_sustained_tells_no_saturation() -> None:
    """With one seed UGAL_PF sustains .5 of tornado traffic and not .4: "up to 50 %" held."""
    claims = {claim.statement: claim for claim in of_kept_points(exhibit("polarfly-fig8")).claims}
    for routing, verdict in (("UGAL", "reading"), ("UGAL_PF", "not computed")):
        assert claims[f"{routing} sustains up to 50 %: tornado"].verdict == verdict
    both = "saturates between 50 and 66 %, UGAL and UGAL_PF: "
    lower = [
        (claim.statement.removeprefix(both), claim.verdict)
        for claim in of_kept_points(exhibit("polarfly-fig8")).claims
        if claim.statement.startswith(both) and claim.relation == ">="
    ]
    assert lower == [("permutation", "reading"), ("tornado", "not computed")]


def test_figure_ten_has_the_printed_numbers_of_routers() -> None:
    claims = {claim.statement: claim for claim in of_kept_points(exhibit("polarfly-fig10")).claims}
    found = [claims[f"q = {q}: routers"] for q in (13, 19, 25, 31)]
    assert [(c.printed, c.verdict) for c in found] == [
        (count, "equal") for count in (183, 381, 651, 993)
    ]


@pytest.mark.usefixtures("no_hottest_links")
def test_orders_of_saturation_name_the_load_that_is_compared() -> None:
    """None of the loads of PolarStar's figure 10 is sustained with minimal routes."""
    found = of_kept_points(exhibit("polarstar-fig10"))
    simulated = [
        claim.statement for claim in found.claims if "by the hottest link" not in claim.statement
    ]
    assert simulated
    assert all(says.endswith(", by the largest accepted load") for says in simulated)
    for name in ("polarfly-fig8", "polarstar-fig9"):
        setup = " ".join(of_kept_points(exhibit(name)).setup)
        assert "compared by the largest load that they accept" in setup


def test_bounces_of_an_adjacent_pair_share_last_links() -> None:
    """Fluid, split evenly, as switches see their own links: the hottest one gets more than twice
    what it gets if the next switch is drawn, as the authors' UGAL_PF does."""
    topology = build_topology("polarfly", {"q": 13})
    near = [set(row[row >= 0].tolist()) for row in topology.graph.padded()]
    pairs = PATTERNS["perm1hop"](topology, 7, 0)
    fluid = Fluid.of(PaperFabric({"family": "polarfly", "q": 13}, 7, "UGAL_PF, bounces").build())
    paths = fluid.paths(pairs)
    even = np.where(np.arange(paths.has_next_hop.shape[1]) > 0, paths.has_next_hop, 0.0)
    bounced = paths.loads(even / even.sum(axis=1, keepdims=True)).max()
    drawn = Counter[tuple[int, int]]()
    for s, d in zip(pairs.source.tolist(), pairs.destination.tolist(), strict=True):
        for r in near[s] - {d}:
            for w in (after := near[r] - {s, d}):
                way = [s, *([r] if w not in near[s] else []), w, *(near[w] & near[d] - {w}), d]
                share = 1 / len(near[s] - {d}) / len(after)
                drawn.update(dict.fromkeys(pairwise(way), share))
    assert bounced == pytest.approx(0.692, abs=0.001)
    assert max(drawn.values()) == pytest.approx(0.315, abs=0.001)


def test_figure_nine_has_a_panel_for_each_permutation() -> None:
    found = of_kept_points(exhibit("polarfly-fig9"))
    assert [panel.title for panel in found.panels[:2]] == ["perm2hop", "perm1hop"]
    for panel in found.panels:
        assert [curve.name for curve in panel.curves] == ["PF-MIN", "PF-UGAL", "PF-UGAL_PF"]
    slower = [claim for claim in found.claims if claim.statement.startswith("UGAL_PF takes longer")]
    assert [claim.statement.split(": ")[1] for claim in slower] == ["perm2hop", *PERMUTATIONS]
    assert {claim.verdict for claim in slower} == {"equal"}


def test_the_page_says_how_far_the_code_of_today_is_from_kept_points() -> None:
    """UGAL_PF at q = 13, where its latency is judged and, simulated again, behind that."""
    routed = re.compile(r'q": 13.*UGAL_PF')
    kept = {
        each.key.load: each
        for each in result_cache.cached_results(WHOLE["polarfly-fig10"])
        if routed.search(each.key.fabric) and each.key.seed == 0
    }
    note = of_kept_points(exhibit("polarfly-fig10")).setup[-1]
    now = simulated_point(kept[0.9].key)
    (sooner,) = map(float, re.findall(r"(\d+\.\d) cycles at 0\.8, ", note))
    old = [kept[load].result.mean_latency for load in (0.8, 0.9)]
    assert f"{sooner} cycles at 0.8, {now.mean_latency:.1f} at 0.9 (kept: " in note
    assert "(kept: {:.1f}, {:.1f})".format(*old) in note
    assert sooner == pytest.approx(old[0], rel=0.005)
    assert now.accepted == pytest.approx(kept[0.9].result.accepted, abs=0.002)
    drawn = kept[0.9].key._replace(fabric=kept[0.9].key.fabric.replace(", bounces", ""))
    assert "authors' paths between adjacent switches it has a deadlock at 0.9" in note
    assert simulated_point(drawn).deadlock


def curve(folder: Path | None) -> LatencyCurve:
    with caching_in(folder):
        return simulated_curve(FABRIC, "uniform", quick=False, runs=FEW)


def test_a_kept_point_is_not_computed_again(tmp_path: Path) -> None:
    whole = curve(None)
    assert curve(tmp_path) == whole
    head, *lines = (tmp_path / "points.csv").read_text().splitlines()
    assert head.startswith("fabric,pattern,load,seed,settings,code,offered,")
    assert [line.split('}",')[1][:14] for line in lines] == [
        f"uniform,{load},{seed}," for load in (0.1, 0.3) for seed in (0, 1)
    ]
    other = [line.replace("0.1,0.", "0.1,0.9") for line in lines]  # the load accepted of 0.1
    assert other != lines
    (tmp_path / "points.csv").write_text("\n".join((head, *other)) + "\n")
    assert curve(tmp_path) != whole


def test_a_point_of_other_code_or_half_a_line_is_computed_again(tmp_path: Path) -> None:
    whole = curve(tmp_path)
    head, first, second, *others = (tmp_path / "points.csv").read_text().splitlines()
    first = first.replace(points_digest(), "other").replace("0.1,0.", "0.1,0.9")
    (tmp_path / "points.csv").write_text("\n".join((head, first, *others, second[:80])) + "\n")
    assert curve(tmp_path) == whole


def test_a_file_of_other_columns_is_named_with_its_line(tmp_path: Path, polarfab) -> None:
    file = tmp_path / "points.csv"
    file.write_text("fabric,load\nlab,0.1\n")
    code, _, err = polarfab("reproduce", "--check", file)
    assert (code, err.startswith(f"error: {file}:1: required the columns fabric, pattern")) == (
        2,
        True,
    )
    with pytest.raises(InputError, match="the columns fabric"):
        curve(tmp_path)
    assert file.read_text() == "fabric,load\nlab,0.1\n"
    file.write_text("")
    assert curve(tmp_path) == curve(tmp_path / "new")


@pytest.mark.parametrize(
    ("column", "text", "says"),
    [
        ("fabric", "{", "required a point as `reproduce` writes it, given uniform"),
        ("fabric", '{"host": 2}', "unexpected keyword argument 'host'"),
        ("fabric", FABRIC.text().replace("MIN", "MAX"), "KeyError: 'MAX'; remove the lines"),
        ("pattern", "uniorm", "given uniorm, {"),
        ("settings", "[1]", "given uniform, [1] of {"),
        ("settings", '{"drain": "x"}', "drain: required a number from 0, given x"),
        ("load", '"a"', "required points, as `reproduce` writes them, given none"),
        ("seed", "-1", "required points, as `reproduce` writes them, given none"),
    ],
)
def test_an_edited_point_is_named(
    tmp_path: Path, polarfab, column: str, text: str, says: str
) -> None:
    (head, row, *_) = csv.reader(WHOLE["polarfly-fig10"].read_text().splitlines())
    cells = {**dict(zip(head, row, strict=True)), "fabric": FABRIC.text(), column: text}
    with (tmp_path / "points.csv").open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([head, cells.values()])
    code, _, err = polarfab("reproduce", "--check", tmp_path / "points.csv")
    assert (code, says in " ".join(err.split())) == (2, True), err


def test_points_are_checked(tmp_path: Path, polarfab) -> None:
    curve(tmp_path)
    file = tmp_path / "points.csv"
    words = ("reproduce", "--check", file, "--points", 2, "--json")
    code, out, err = polarfab(*words)
    assert (code, err) == (0, "")
    rows = json.loads(out)
    assert len(rows) == 2
    assert all(row["kept"] == row["now"] and row["code"] == "the same" for row in rows)
    assert rows[0]["fabric"] == "polarfly q=3 2 hosts a switch, MIN"
    assert json.loads(polarfab(*words, "--seed", 5)[1]) != rows
    text = file.read_text()
    file.write_text(text.replace(points_digest(), "older"))
    code, out, _ = polarfab(*words)
    assert code == 0
    assert all(row["within"] > 0 and row["code"] == "other" for row in json.loads(out))
    one = [line for line in text.splitlines() if ",1," not in line.split("uniform")[-1][:8]]
    file.write_text("\n".join(one).replace(points_digest(), "older"))
    code, out, err = polarfab(*words)
    assert code == 0
    assert [(row["within"], row["agrees"]) for row in json.loads(out)] == [(None, None)] * 2
    assert "undecided: 2, by other code, of loads with one run: keep more seeds" in err
    assert "undecided" in polarfab(*words[:-1])[1]
    lines = list(csv.reader(text.splitlines()))
    for line in lines[1:]:
        line[lines[0].index("accepted")] = "0.9"
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows(lines)
    code, out, _ = polarfab(*words, "--points", 4)
    assert code == 1
    assert not all(row["agrees"] for row in json.loads(out))
    with file.open("a") as stream:  # a line's interval is that of runs of its own code
        stream.write(text.partition("\n")[2].replace(points_digest(), "older"))
    rows = json.loads(polarfab(*words, "--points", 8)[1])
    assert [row["agrees"] for row in rows if row["code"] == "other"] == [True] * 4
    file.write_text("")
    code, _, err = polarfab(*words)
    assert code == 2
    assert "points.csv: required points, as `reproduce` writes them" in err
