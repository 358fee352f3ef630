"""The guarantee while something is down, against packets that are followed one by one."""

from __future__ import annotations

import pathlib
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from compilers.evaluation.failure_guarantees import (
    FailureGuarantee,
    failure_count,
    failure_guarantees,
)
from compilers.evaluation.guarantee import guarantee
from compilers.forwarding.host_paths import TabulatedHops
from compilers.forwarding.program import program_of
from compilers.forwarding.single_packets import DELIVERED, Path, SinglePackets
from compilers.forwarding.walks import Walks
from compilers.pipeline import compile_fabric
from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import repair_tables
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.wiring.damage import remaining_fabric
from inventory.problems import InputError
from tests.compilers.wiring.makers import missing

HOSTS = 2


def compiled(
    balance: str = "compact-valiant", protect: str = "node", minimal_share: str = ""
) -> Build:
    share = {"minimal_share": float(minimal_share)} if minimal_share else {}
    spec = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 3},
        "hosts_per_node": HOSTS,
        "routing": {"balance": balance, "protect": protect, **share},
    }
    return compile_fabric(load_fabric(spec))


@pytest.fixture(scope="module")
def build() -> Build:
    return compiled()


@pytest.fixture(scope="module")
def by_link(build: Build) -> list[FailureGuarantee]:
    return [*failure_guarantees(build, "link")]


Loads = dict[tuple[int, int], NDArray[np.float64]]
"""By link, float64[13, 13]: the part of what one switch sends to another that crosses it."""


def by_hand(build: Build, *elements: int) -> float:
    """Every packet of every pair that is left, by the live weights of its switch."""
    links = len(build.wiring.link_ends())
    left = [v for v in range(13) if v + links not in elements]
    load: Loads = defaultdict(lambda: np.zeros((13, 13)))
    for d in left:
        packets = SinglePackets.with_failures(build, d, elements)
        for s in left:
            for path, part in parts_of(packets, s) if s != d else ():
                if path.outcome != DELIVERED or path.switches[-1] != d:
                    return 0.0
                for link in pairwise(path.switches):
                    load[link][s, d] += part
    peaks = (one[linear_sum_assignment(one, maximize=True)].sum() for one in load.values())
    return min(1.0, 1 / (HOSTS * max(peaks)))


def parts_of(packets: SinglePackets, source: int) -> list[tuple[Path, float]]:
    """Each path of a switch's packets, and the part that takes it."""
    if packets.build.forwarding.intermediates:
        paths = [path for _, path in packets.intermediate_paths(source)]
        return [(path, 1 / len(paths)) for path in paths]
    weights, paths = packets.weights_of(source), [*packets.paths(source)]
    parts = [weights.get(path.first_link, 0) or (len(paths) == 1) for path in paths]
    return [(path, part / sum(parts)) for path, part in zip(paths, parts, strict=True)]


@pytest.mark.parametrize("kind", ["link", "node"])
def test_each_case_is_what_its_packets_give(
    build: Build, by_link: list[FailureGuarantee], kind: str
) -> None:
    ends, names = build.wiring.link_ends(), build.wiring.names
    elements = {"-".join(names[v] for v in link): n for n, link in enumerate(ends.tolist())}
    elements |= {name: len(ends) + v for v, name in enumerate(names)}
    found = by_link if kind == "link" else failure_guarantees(build, kind)
    assert len(found) == {"link": 24, "node": 13}[kind]
    assert [case.share for case in found] == sorted(case.share for case in found)
    for case in found[::8]:
        assert case.share == pytest.approx(by_hand(build, elements[case.element]))


def test_a_controllers_tables_are_looked_at_in_the_fabric_that_is_left(
    build: Build, by_link: list[FailureGuarantee]
) -> None:
    found = {case.element: case for case in by_link}
    for a, b in (build.wiring.link_ends()[n].tolist() for n in (0, 20)):
        link = int(np.flatnonzero(build.wiring.far[a] == b)[0])
        damage = missing(build.wiring, [], [(a, link)])
        topology, wiring = remaining_fabric(build.topology, build.wiring, damage)
        tables = repair_tables(IntactBuild.of(build), damage.links).tables
        after = replace(build, topology=topology, wiring=wiring, tables=tables)
        assert found[f"{a}-{b}"].repaired == pytest.approx(guarantee(after).share)


def test_without_repair_in_the_switch_a_link_takes_all_until_a_controller_acts() -> None:
    found = failure_guarantees(compiled(protect="none"), "link")
    assert {case.share for case in found} == {0.0}
    assert min(case.repaired for case in found) > 0


@pytest.mark.parametrize("kind", ["link", "node"])
def test_packets_over_intermediates_are_followed_on_both_legs(kind: str) -> None:
    build = compiled("valiant", "node")
    links, names = len(build.wiring.link_ends()), build.wiring.names
    ends = build.wiring.link_ends().tolist()
    found = {case.element: case for case in failure_guarantees(build, kind)}
    for number in (5,):
        name = names[number] if kind == "node" else "-".join(names[v] for v in ends[number])
        element = number + links * (kind == "node")
        assert found[name].share == pytest.approx(by_hand(build, element))
        assert found[name].share > 0.25
        assert found[name].repaired > 0.3
    most = guarantee(build).share
    assert all(case.share < most for case in found.values())


def test_without_repair_a_fabric_with_intermediates_waits_for_the_controller() -> None:
    found = failure_guarantees(compiled("valiant", "none"), "link")
    assert {case.share for case in found} == {0.0}
    assert min(case.repaired for case in found) > 0.3


def test_a_controller_gives_up_an_intermediate_that_is_gone() -> None:
    """As a fabric without the switch, in which the others draw its number, too."""
    build = compiled("valiant", "none")
    gone = 4
    dead = (build.wiring.far == gone) | (np.arange(13) == gone)[:, None]
    after = replace(
        build, tables=repair_tables(IntactBuild.of(build), dead & (build.wiring.far >= 0)).tables
    )
    load: Loads = defaultdict(lambda: np.zeros((13, 13)))
    left = [v for v in range(13) if v != gone]
    for s, r, d in product(left, range(13), left):
        if s == d:
            continue
        whole = path_to(after, s, r)
        whole += path_to(after, whole[-1], d)[1:]
        assert whole[-1] == d
        for link in pairwise(whole):
            load[link][s, d] += 1 / 13
    peaks = (one[linear_sum_assignment(one, maximize=True)].sum() for one in load.values())
    found = {case.element: case for case in failure_guarantees(build, "node")}[str(gone)]
    assert found.repaired == pytest.approx(1 / (HOSTS * max(peaks)))


def path_to(build: Build, source: int, destination: int) -> list[int]:
    """The switches of a path, up to one without a route."""
    fib, path = Fib.of(build.tables, build.wiring.far_by_port()), [source]
    egress = fib.egress(np.array([destination]))[:, 0]
    while path[-1] != destination and egress[path[-1]] < build.tables.classes.port.shape[1]:
        port = build.tables.classes.port[path[-1], egress[path[-1]]]
        path.append(int(build.wiring.far_by_port()[path[-1], port]))
    return path


def test_a_rack_takes_its_switches_and_links() -> None:
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "hosts_per_node": HOSTS}
    nodes = [{"name": str(v), "type": "leaf", "rack": f"r{v // 3}"} for v in range(13)]
    leaf = {"ports": [{"count": 4}, {"first": 5, "count": HOSTS, "role": "host"}]}
    named = [{"name": f"r{n}", "row": 0, "column": n, "units": 42} for n in range(5)]
    spec["inventory"] = {"node_types": {"leaf": leaf}, "nodes": nodes, "racks": named}
    spec["routing"] = {"balance": "compact-valiant", "protect": "node"}
    build = compile_fabric(load_fabric(spec))
    links = len(build.wiring.link_ends())
    found = {case.element: case for case in failure_guarantees(build, "rack")}
    assert len(found) == 5
    for number, name in enumerate(sorted(found)):
        names = enumerate(build.wiring.names)
        down = [vertex + links for vertex, node in names if int(node) // 3 == number]
        assert found[name].share == pytest.approx(by_hand(build, *down))


def test_where_no_host_is_left_nothing_is_guaranteed() -> None:
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 2}, "hosts_per_node": 1}
    spec["inventory"] = {
        "node_types": {"leaf": {"ports": [{"count": 4}]}},
        "racks": [{"name": "all", "row": 0, "column": 0}],
        "nodes": [{"name": str(v), "type": "leaf", "rack": "all"} for v in range(7)],
    }
    (case,) = failure_guarantees(compile_fabric(load_fabric(spec)), "rack")
    assert (case.share, case.repaired) == (0, 0)


def test_links_whose_names_are_the_same_are_two_cases(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ring.txt").write_text("a b-c\na-b c\na a-b\nb-c c\n")
    graph = "{family: graph, file: ring.txt}"
    routing = "{balance: minimal}"
    (tmp_path / "fabric.yaml").write_text(f"name: x\ntopology: {graph}\nrouting: {routing}\n")
    ring = compile_fabric(load_fabric(tmp_path / "fabric.yaml"))
    cases = failure_guarantees(ring, "link")
    assert failure_count(ring, "link") == 4
    names = sorted(case.element for case in cases)
    assert names in (["a-a-b", "a-b-c", "a-b-c", "b-c-c"], ["a-a-b", "a-b-c", "a-b-c", "c-b-c"])


def test_cases_of_a_large_fabric_are_drawn(build: Build, by_link: list[FailureGuarantee]) -> None:
    every = {case.element: case for case in by_link}
    some = failure_guarantees(build, "link", sample=5, seed=3)
    assert len(some) == 5
    assert failure_count(build, "link") == 24
    assert all(every[case.element] == case for case in some)
    other = failure_guarantees(build, "link", sample=5, seed=4)
    assert {case.element for case in other} != {case.element for case in some}


def test_cases_are_drawn_where_all_take_long(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compilers.evaluation.failure_guarantees.MOST_LINK_WORK", 4 * 169)
    assert len(failure_guarantees(build, "link")) == 4


def test_a_fabric_in_which_a_look_takes_long_is_refused(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 24 links, each way, and 169 pairs of switches."""
    monkeypatch.setattr(
        "compilers.evaluation.failure_guarantees.MOST_LINK_FRACTIONS_SWITCHES_DOWN", 48 * 169 - 1
    )
    with pytest.raises(InputError, match=r"at most 8,111 links.*; try failures of links, of which"):
        failure_guarantees(build, "node")
    monkeypatch.setattr("compilers.evaluation.failure_guarantees.MOST_LINK_FRACTIONS", 48 * 169 - 1)
    with pytest.raises(InputError, match=r"failures: required a fabric of at most 8,111 links"):
        failure_guarantees(build, "link")


@pytest.mark.parametrize("policy", ["balance: spread, minimal_share: .3", "balance: minimal"])
def test_each_case_is_what_all_paths_give(policy: str) -> None:
    """Marked packets are spread over the links that are up, and none over a link that is down."""
    build = compiled(**dict(word.split(": ") for word in policy.split(", ")))
    intact, links = IntactBuild.of(build), len(build.wiring.link_ends())
    ends, names = build.wiring.link_ends(), build.wiring.names
    elements = {"-".join(names[v] for v in link): n for n, link in enumerate(ends.tolist())}
    elements |= {name: links + v for v, name in enumerate(names)}
    kinds = ("link", "node")
    cases = [case for kind in kinds for case in failure_guarantees(build, kind, sample=2)]
    for case in cases:
        number = elements[case.element]
        dead = build.wiring.far < 0
        one, other = ends[number].tolist() if number < links else (number - links, -1)
        if other < 0:
            dead |= (build.wiring.far == one) | (np.arange(13) == one)[:, None]
        else:
            dead[one] |= build.wiring.far[one] == other
            dead[other] |= build.wiring.far[other] == one
        after = replace(build, tables=repair_tables(intact, dead & (build.wiring.far >= 0)).tables)
        assert case.share == pytest.approx(dense(build, number))
        assert case.repaired == pytest.approx(dense(after, number))


def test_a_large_fabric_is_looked_at_without_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links are then asked who crosses them, and bounds count all growth."""
    build = compiled("spread")
    kinds = ("link", "node")
    small = [case for kind in kinds for case in failure_guarantees(build, kind, sample=1)]
    monkeypatch.setattr("compilers.evaluation.damaged_loads.MOST_COMPUTED", 0)
    large = [case for kind in kinds for case in failure_guarantees(build, kind, sample=1)]
    for one, other in zip(small, large, strict=True):
        assert one.element == other.element
        assert (one.share, one.repaired) == pytest.approx((other.share, other.repaired))


def dense(build: Build, element: int) -> float:
    """All paths of all pairs that are left, with one element down."""
    program, links = program_of(build), len(build.wiring.link_ends())
    ends = np.setdiff1d(np.arange(13), element - links)
    hops = TabulatedHops.of(Walks.of(build), program, np.array([element]))
    source, destination = (x.ravel() for x in np.meshgrid(ends, ends, indexing="ij"))
    paths = hops.paths(source, destination)
    assert (paths.links_or_fault >= 0).all()
    load = np.zeros((program.far.size, len(source)))
    for arc in paths.arcs:
        some = np.flatnonzero(arc >= 0)
        np.add.at(load, (arc[some], paths.pair[some]), paths.share[some])
    square = load.reshape(-1, len(ends), len(ends))
    peaks = (one[linear_sum_assignment(one, maximize=True)].sum() for one in square)
    return min(1.0, 1 / (HOSTS * max(peaks)))


@pytest.mark.parametrize("kind", ["2", "link+node", "nodes"])
def test_kinds_of_several_failures_at_once_are_refused(build: Build, kind: str) -> None:
    with pytest.raises(InputError, match="failures: required failures of one at a time: link, no"):
        failure_guarantees(build, kind)
