"""Bounced paths between adjacent switches: the rule, tables, proof, and who carries it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from compilers.evaluation.saturation import throughput
from compilers.pipeline import compile_fabric
from compilers.proof.explanation import explain
from compilers.proof.lossless.channels import find_channels
from compilers.proof.proof_options import ProofOptions
from compilers.proof.soundness.build_soundness import broken_claims
from compilers.proof.walks.delivery import verify
from compilers.routing.conic_bounces import conic_bounces
from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_pairs import apex_links_of
from compilers.routing.link_repair import repair_tables
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.topology.polarity import cross
from compilers.wiring.damage import remaining_fabric
from inventory.problems import InputError
from tests.compilers.readers.emitted import IDENTITY, check, write
from tests.compilers.routed import routed
from tests.compilers.routing.makers import links_of, some
from tests.compilers.wiring.makers import missing


def bounced(q: int, protect: str = "none") -> Build:
    return routed(q=q, spread=True, bounces=True, protect=protect)


@pytest.mark.parametrize("q", [4, 5, 7])
def test_bounces_are_a_permutation_and_few_share_the_last_link(q: int) -> None:
    wiring = routed(q=q).wiring
    far, link, apex = wiring.far, conic_bounces(q, wiring), apex_links_of(wiring)
    for r, near in enumerate(far):
        count = np.count_nonzero(near >= 0)
        assert sorted(link[r, :count]) == list(range(count))
        assert not ((link[r] == apex[r]) | (link[r] == np.arange(q + 1)))[:count].any()
    bounced_to = np.take_along_axis(far, np.maximum(link, 0).astype(np.intp), axis=1)
    for s in range(0, len(far), 7):
        near = far[s][far[s] >= 0]
        over = {int(r): int(bounced_to[r, far[r].tolist().index(s)]) for r in near}
        for d in near:
            alternates = [w for r, w in over.items() if r != d and d not in far[r]]
            last = cross(q, np.array(alternates), np.full(len(alternates), d))
            assert np.bincount(last).max() <= 7


@pytest.mark.parametrize(("q", "protect"), [(2, "node"), (3, "node"), (4, "none")])
def test_every_pair_arrives_by_every_path_under_every_failure(q: int, protect: str) -> None:
    """In at most 4 links; 7 with a link down, 5 with a switch down; two failures lose nothing."""
    build = bounced(q, protect)
    report = verify(build, ProofOptions(method="walk"))
    assert report.passed
    assert report.alternates is not None
    assert (report.alternates.strays, report.alternates.max_hops) == (0, 4)
    most = {"link": (7, 3), "node": (5, 1), "2": (10, 7)}
    assert {f.kind: (f.max_hops, f.stretch) for f in report.failures} == {
        kind: most[kind] for kind in most if protect == "node" and (kind != "2" or q > 2)
    }
    found = find_channels(build, "valley", ("link", "node") if protect == "node" else ())
    assert found.is_deadlock_free
    assert found.count == (4 if protect == "node" else 3)


def test_paths_to_a_neighbour_are_over_the_apex_or_bounce() -> None:
    build = bounced(7)
    far = build.wiring.far
    for s, d in ((9, int(far[9, 0])), (30, int(far[30, 3])), (0, int(far[0, 1]))):
        found = explain(build, s, d)
        assert {path[1] for path in found.alternates} == set(far[s][far[s] >= 0]) - {d}
        for path in found.alternates:
            assert len(path) == (3 if d in far[path[1]] else 5)
            assert path.count(s) == 1


@cache
def repair_of(q: int, protect: str) -> IntactBuild:
    return IntactBuild.of(bounced(q, protect))


@pytest.mark.parametrize("protect", ["none", "link"])
def test_they_arrive_in_tables_repaired_after_failures(protect: str) -> None:
    """Minimal paths never bounce and bounces lead ever farther away, so no packet circles."""
    build, intact = bounced(4, protect), repair_of(4, protect)
    links = links_of(build)
    for gone in [[link] for link in some(links, 2)] + [some(links, 3)]:
        damage = missing(build.wiring, [], gone)
        tables = repair_tables(intact, damage.links).tables
        topology, wiring = remaining_fabric(build.topology, build.wiring, damage)
        report = verify(replace(build, topology=topology, wiring=wiring, tables=tables))
        assert report.delivered == report.minimal == report.pairs
        assert report.alternates is not None
        assert not report.alternates.strays


def test_a_path_that_is_missing_and_a_bounce_to_the_apex_are_reported() -> None:
    build = bounced(5)
    assert not broken_claims(build).count
    c, links = build.tables.classes, build.wiring.far.shape[1]
    fewer = np.array(c.alternate)
    fewer[7, links + 2, -1] = 0
    lacks = replace(build, tables=replace(build.tables, classes=replace(c, alternate=fewer)))
    lacking = "7.alternate[8]: required port 6, a fabric port, given nothing"
    assert lacking in broken_claims(lacks).texts()
    s, k = np.argwhere(apex_links_of(build.wiring) >= 0)[0]
    other = c.bounce.copy()
    other[s, k] = build.wiring.port[s, apex_links_of(build.wiring)[s, k]]
    back = replace(build, tables=replace(build.tables, classes=replace(c, bounce=other)))
    assert "a port whose neighbour repairs the class" in broken_claims(back).texts()[0]
    none = replace(build, forwarding=replace(build.forwarding, bounces=False))
    assert broken_claims(none).count


@pytest.mark.parametrize(
    ("target", "name", "line"),
    [("ovs", "flows.txt", "in_port"), ("linux", "routes.batch", "table 5001")],
)
def test_who_carries_them_is_read_back_bounces_included(
    target: str, name: str, line: str, tmp_path
) -> None:  # type: ignore[no-untyped-def]
    build = replace(bounced(3), identity=IDENTITY)
    write(target, build, tmp_path)
    assert not check(target, build, tmp_path).differences
    path = tmp_path / "0" / name
    lines = path.read_text().split("\n")
    first = next(number for number, text in enumerate(lines) if line in text)
    path.write_text("\n".join(lines[:first] + lines[first + 1 :]))
    assert check(target, build, tmp_path).differences


@pytest.mark.parametrize("target", ["eos", "srv6"])
def test_who_cannot_carry_them_refuses_by_name(target: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    build = replace(bounced(3), identity=IDENTITY)
    said = f"minimal, as target {target} cannot do routes by the port that packets came in on"
    with pytest.raises(InputError, match=said):
        write(target, build, tmp_path)


FABRIC = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
BOUNCE = {"balance": "compact-valiant", "adjacent": "bounce"}


def test_what_cannot_do_them_is_reduced_or_refused_at_compile() -> None:
    fabric = {**FABRIC, "system": "eos", "routing": BOUNCE}
    with pytest.raises(
        InputError, match="eos can do, given bounce, which needs routes by the port"
    ):
        compile_fabric(load_fabric(fabric))
    fabric["routing"] = BOUNCE | {"on_missing": "minimal"}
    build = compile_fabric(load_fabric(fabric))
    assert build.balance == "compact-valiant"
    assert build.policy["asked_adjacent"] == "bounce"
    assert "adjacent" not in build.policy
    assert not build.tables.classes.bounce.shape[2]


def test_a_fabric_too_large_for_a_search_is_refused() -> None:
    star = {"family": "polarstar", "q": 31, "supernode": "inductive-quad", "degree": 4}
    fabric = {**FABRIC, "topology": star, "routing": BOUNCE}
    said = r"routing.adjacent: required minimal in a polarstar of more than 8,192 switches"
    with pytest.raises(InputError, match=said):
        load_fabric(fabric)


STARS: dict[str, dict[str, int | str]] = {
    "iq": {"family": "polarstar", "q": 2, "supernode": "inductive-quad", "degree": 3},
}


@pytest.mark.parametrize(("name", "least"), [("iq", 0.95)])
def test_those_of_other_families_are_searched_for(name: str, least: float) -> None:
    """.5 of perm1hop without them: two hosts a switch, neighbours of one link."""
    build = routed(**STARS[name], spread=True, bounces=True, protect="node")  # type: ignore[arg-type]
    walked, certified = (verify(build, ProofOptions(method=m)) for m in ("walk", "local"))
    assert walked.passed
    assert walked.alternates == certified.alternates
    assert walked.alternates is not None
    assert walked.alternates.max_hops == 5
    lost = [[(f.kind, f.lost_pairs) for f in r.failures] for r in (walked, certified)]
    assert lost[0] == lost[1] == [("link", 0), ("node", 0)]
    assert max(f.max_hops for f in walked.failures) == 9
    assert find_channels(build).count == 3
    found = throughput(build, "perm1hop", 2).adaptive
    assert found is not None
    assert found.share >= least


def test_a_damaged_fabric_has_them() -> None:
    hardware = {
        "node_types": {"leaf": {"ports": [{"name": "a{}", "count": 8}]}},
        "nodes": [{"name": f"n{v}", "type": "leaf"} for v in range(13)],
        "dead_links": [{"a": "n0", "b": "n1"}],
    }
    fabric = {**FABRIC, "routing": BOUNCE | {"protect": "node"}, "inventory": hardware}
    build = compile_fabric(load_fabric(fabric))
    assert len(explain(build, 0, 4).alternates) == 2
    report = verify(build, ProofOptions())
    assert report.passed
    assert [f.lost_pairs for f in report.failures] == [0, 0]


def test_fitted_weights_carry_tornado_and_neighbours_at_q_7() -> None:
    """Four hosts a switch: .25 and .25 without bounced paths."""
    for pattern in ("tornado", "perm1hop"):
        found = throughput(bounced(7), pattern, 4).adaptive
        assert found is not None
        assert found.share >= 0.6
