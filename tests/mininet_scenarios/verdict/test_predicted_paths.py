"""Paths over intermediates and paths shared at every hop, against single packets of `explain`."""

from __future__ import annotations

import numpy as np
import pytest

from compilers.pipeline import compile_fabric
from compilers.proof.explanation import explain
from compilers.proof.failures.risk_cases import element_of_links
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from mininet_scenarios.scenario.outage import Outage, PhysicalChange
from mininet_scenarios.verdict.predict import Prediction

FABRICS = {
    "intermediates": ("{family: polarfly, q: 3}", "valiant"),
    "every hop": ("{family: hyperx, sides: 3x3}", "ecmp, transit: ecmp"),
    "a fat tree": ("{family: fat-tree, k: 4}", "ecmp, transit: ecmp"),
}
CASES = {"whole": ((), None), "a link down": ((0, 1), None), "a switch down": ((), 4)}


def made(name: str, protect: str) -> Build:
    topology, balance = FABRICS[name]
    words = dict(part.split(": ") for part in f"balance: {balance}, protect: {protect}".split(", "))
    family, *rest = topology.strip("{}").split(", ")
    parameters = dict(part.split(": ") for part in (family, *rest))
    known = {k: int(v) if v.isdigit() else v for k, v in parameters.items()}
    return compile_fabric(load_fabric({"name": "lab", "topology": known, "routing": words}))


def names_of(build: Build, *switches: int) -> tuple[str, ...]:
    return tuple(build.wiring.names[v] for v in switches)


def predicted(
    known: Prediction, source: int, destination: int
) -> set[tuple[tuple[int, ...], bool]]:
    """The switches that packets of a pair pass by each way, and whether they arrive."""
    paths = known.paths(np.array([source]), np.array([destination]))
    assert paths.share.sum() == pytest.approx(1)
    far = known.tabulated.program.far.ravel()
    return {
        ((source, *(int(far[arc]) for arc in arcs[arcs >= 0])), bool(hops >= 0))
        for arcs, hops in zip(paths.arcs.T, paths.links_or_fault, strict=True)
    }


@pytest.mark.parametrize(
    ("name", "protect", "case"),
    [
        *((name, "link", "a link down") for name in FABRICS),
        ("intermediates", "none", "a link down"),
        ("every hop", "link", "whole"),
    ],
)
def test_every_path_is_one_that_single_packets_take(name: str, protect: str, case: str) -> None:
    build = made(name, protect)
    link, switch = CASES[case]
    outage, dead = Outage(), []
    if link:
        link = (0, int(build.wiring.far[0, 0]))
        outage = outage.after(PhysicalChange((names_of(build, *link),)))
        dead.append(element_of_links(build)[link])
    if switch is not None:
        outage = outage.after(PhysicalChange(switches=names_of(build, switch)))
        dead.append(len(build.wiring.link_ends()) + switch)
    known = Prediction.of(build, outage)
    ends = [v for v in np.flatnonzero(build.topology.endpoints).tolist() if v != switch]
    for source in ends[::4]:
        for destination in ends:
            if source == destination:
                continue
            told = explain(
                build, source, destination, dead or [len(build.wiring.link_ends()) + 10**6]
            )
            wanted = {(taken.path, not taken.fault) for taken in told.failing}
            found = predicted(known, source, destination)
            assert {path for path, arrives in found if arrives} == {
                path for path, arrives in wanted if arrives
            }
            assert any(not arrives for _, arrives in found) == any(
                not arrives for _, arrives in wanted
            )
            hops = [len(path) - 1 for path, arrives in wanted if arrives]
            every = all(arrives for _, arrives in wanted)
            cell = source, destination
            assert known.fewest_hops[cell] == min(hops) if every else known.fewest_hops[cell] < 0
            assert known.most_hops[cell] == max(hops, default=known.most_hops[cell])


@pytest.mark.parametrize("name", FABRICS)
def test_loads_are_within_their_bounds(name: str) -> None:
    known = Prediction.of(made(name, "link"))
    packets = np.ones((known.build.tables.switches,) * 2, np.int64)
    packets[~known.build.topology.endpoints] = packets[:, ~known.build.topology.endpoints] = 0
    np.fill_diagonal(packets, 0)
    least, most = known.load_bounds(packets)
    assert (least <= known.loads(packets)).all()
    assert (known.loads(packets) <= most).all()
    assert (least < most).any()


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("name", FABRICS)
def test_hops_and_bounds_are_those_of_the_paths_one_by_one(name: str, down: bool) -> None:
    build = made(name, "link")
    link = names_of(build, 0, int(build.wiring.far[0, 0]))
    known = Prediction.of(build, Outage(frozenset([tuple(sorted(link))] if down else [])))
    ends = np.flatnonzero(build.topology.endpoints)
    packets = np.zeros((build.tables.switches,) * 2, np.int64)
    packets[np.ix_(ends, ends)] = np.random.default_rng(1).integers(0, 4, (len(ends), len(ends)))
    np.fill_diagonal(packets, 0)
    bounds = np.zeros((2, known.arcs), np.int64)
    for s, d in np.argwhere(packets):
        paths = known.paths(np.array([s]), np.array([d]))
        assert (known.first_path_hops[s, d], known.fewest_hops[s, d]) == (
            paths.links_or_fault[0],
            paths.links_or_fault.min(),
        )
        assert known.most_hops[s, d] == paths.links_or_fault.max()
        counts = [np.bincount(arcs[arcs >= 0], minlength=known.arcs) for arcs in paths.arcs.T]
        bounds += packets[s, d] * np.array((np.min(counts, axis=0), np.max(counts, axis=0)))
    for of_ports, of_paths in zip(known.load_bounds(packets), bounds, strict=True):
        assert (of_ports == known.by_port(of_paths)).all()
