"""Fabrics of which something is missing: what is left is minimal, and little changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compilers.cabling.cable_plan import cables_of, hardware_of
from compilers.pipeline import compile_fabric
from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from compilers.spec.fabric_file import load_fabric
from compilers.spec.forwarding import Forwarding
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load, save
from compilers.tables.intermediate_form import no_route
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.target_lookup import target
from compilers.topology.distance import components, distances, neighbour_table
from compilers.wiring.damage import Damage, damage_of, remaining_fabric
from inventory.model import Inventory
from inventory.problems import InputError
from tests.compilers.proof.makers import without_protection
from tests.compilers.routed import routed, with_alternates
from tests.compilers.wiring.makers import damaged, missing, ports

FABRICS: list[dict[str, object]] = [
    *({"family": "polarfly", "q": q} for q in (3, 4)),
    {"family": "pn", "q": 2},
    {"family": "oft", "q": 2},
    {"family": "polarstar", "q": 2, "supernode": "inductive-quad", "degree": 3},
    {"family": "polarstar", "q": 3, "supernode": "paley", "degree": 2},
]
BOTH = with_alternates(protect="node")


def at_random(build: Build, seed: int, nodes: int, links: int) -> Damage:
    random = np.random.default_rng(seed)
    switch, link = np.nonzero(build.wiring.far >= 0)
    which = random.choice(len(switch), links, replace=False)
    gone = random.choice(len(build.wiring.far), nodes, replace=False)
    chosen = zip(switch[which].tolist(), link[which].tolist(), strict=True)
    return missing(build.wiring, gone.tolist(), list(chosen))


@given(
    fabric=st.sampled_from(FABRICS),
    seed=st.integers(0, 10**6),
    nodes=st.integers(0, 4),
    links=st.integers(0, 8),
    spread=st.booleans(),
)
@settings(max_examples=12)
def test_every_pair_that_is_there_has_a_minimal_path(
    fabric: dict[str, object], seed: int, nodes: int, links: int, spread: bool
) -> None:
    """Minimal in what is left, over every alternate too, and as the graph says, not the tables."""
    whole = routed(**fabric)  # type: ignore[arg-type]
    damage = at_random(whole, seed, nodes, links)
    assume(damage)
    topology, _ = remaining_fabric(whole.topology, whole.wiring, damage)
    ends = np.flatnonzero(topology.endpoints)
    joined = len(set(components(neighbour_table(topology.graph))[ends].tolist())) == 1
    if not joined:
        with pytest.raises(InputError):
            damaged(whole, damage)
        return
    build = damaged(whole, damage, BOTH if spread else None)
    report = verify(build)
    assert report.passed, report
    assert report.max_hops <= build.topology.diameter
    assert report.pairs == len(ends) * (len(ends) - 1)
    dead = {(s, int(whole.wiring.port[s, k])) for s, k in np.argwhere(damage.links)}
    classes = build.tables.classes
    for part in (classes.port[..., None], classes.alternate, classes.protection, classes.bounce):
        assert not {(int(s), int(part[s, c, i])) for s, c, i in np.argwhere(part)} & dead


@pytest.mark.parametrize("fabric", FABRICS, ids=lambda f: f"{f['family']}-{f['q']}")
def test_only_rows_that_must_change_do(fabric: dict[str, object]) -> None:
    """A row keeps its port where that is still on a shortest path of what is left."""
    whole = routed(**fabric)  # type: ignore[arg-type]
    for seed in range(2):
        damage = at_random(whole, seed, seed, 3)
        try:
            build = damaged(whole, damage)
        except InputError:
            continue
        before, after = ports(whole), ports(build)
        cables = build.wiring.far_by_port()
        graph = build.topology.graph
        far = distances(neighbour_table(graph), np.arange(graph.order))
        ends = np.flatnonzero(build.topology.endpoints)
        for s, d in np.argwhere(before != after).tolist():
            if d not in ends or damage.absent[s]:
                assert after[s, d] <= 0 or before[s, d] == after[s, d] or d not in ends
                continue
            there = cables[s, before[s, d]]
            assert there < 0 or far[d, there] != far[d, s] - 1


def test_one_link_changes_rows_in_proportion() -> None:
    """A link of ER_q carries q or so destinations each way; their other rows stay."""
    whole = routed(q=13)
    build = damaged(whole, missing(whole.wiring, [], [(5, 3)]))
    assert 0 < np.count_nonzero(ports(whole) != ports(build)) <= 4 * 13
    star = routed("polarstar", q=5, supernode="inductive-quad", degree=3)
    build = damaged(star, missing(star.wiring, [], [(5, 3)]))
    rows = build.tables.routes.rows() - star.tables.routes.rows()
    assert 0 < np.count_nonzero(rows) <= 40
    assert int(np.abs(rows).sum()) < 300


def test_a_node_that_is_not_there_has_no_rows_and_no_row_leads_to_it() -> None:
    whole = routed("polarstar", q=3, supernode="inductive-quad", degree=3)
    gone = [*range(16, 24), 40]  # a supernode, and one member of another
    build = damaged(whole, missing(whole.wiring, gone, []))
    routes = build.tables.routes
    assert not routes.rows()[gone].any()
    nothing = no_route(routes.egress)
    absent = {*gone, 104 + 2}
    for s in range(104):
        prefix = routes.prefixes(s)
        assert not absent & set(prefix[routes.egress[s] != nothing].tolist())
    assert build.topology.present.sum() == 104 - len(gone)


LAB = """name: lab
topology: {family: polarfly, q: 3}
routing: {balance: compact-valiant, protect: link}
inventory: inventory.yaml
"""


def inventory(**more: object) -> dict[str, object]:
    blocks = [{"count": 4, "role": "fabric"}, {"name": "h{}", "count": 1, "role": "host"}]
    return {
        "node_types": {"leaf": {"ports": blocks}},
        "nodes": [{"name": f"n{v}", "type": "leaf"} for v in range(13)],
        **more,
    }


def compiled(folder: Path, content: dict[str, object]) -> Build:
    (folder / "fabric.yaml").write_text(LAB)
    (folder / "inventory.yaml").write_text(yaml.safe_dump(content))
    return save(compile_fabric(load_fabric(folder / "fabric.yaml")), folder / "build")


def test_from_the_inventory_to_the_targets(tmp_path: Path) -> None:
    content = inventory(dead_links=[{"a": "n0", "b": "n1"}])
    whole = compiled(tmp_path, inventory())
    nodes: list[dict[str, object]] = content["nodes"]  # type: ignore[assignment]
    nodes[4]["state"] = "planned"
    nodes[7]["disabled_ports"] = ["eth1", "h1"]
    build = compiled(tmp_path, content)
    assert verify(build).passed
    near = {int(v) for v in whole.wiring.far[4] if v >= 0}
    other = int(whole.wiring.far[7, list(whole.wiring.port[7]).index(1)])
    lost = len(near) + 1 + (other != 4)
    assert whole.topology.graph.size - build.topology.graph.size == lost
    assert other not in build.wiring.far[7]
    assert not build.wiring.host_port[[4, 7]].any()
    assert build.wiring.names == whole.wiring.names
    assert (build.addressing.host_mac == whole.addressing.host_mac).all()
    assert sorted(Encoder(build).by_datapath_id.values()) == [v for v in range(13) if v != 4]
    for name in ("ovs", "linux"):
        target(name).render(build, tmp_path / name)
        made = {path.name for path in (tmp_path / name).iterdir() if path.is_dir()}
        assert made == {f"n{v}" for v in range(13) if v != 4}
    build = load(tmp_path / "build")
    assert len(cables_of(build.wiring, hardware_of(build)).ends) == build.topology.graph.size


def test_pairs_that_no_table_could_join_break_no_promise(tmp_path: Path) -> None:
    """A quadric of q = 3 with one link left: its failure cuts it off, and that is said."""
    whole = compiled(tmp_path, inventory())
    quadric = int(whole.topology.of_kind("W")[0])
    near = [int(v) for v in whole.wiring.far[quadric] if v >= 0]
    dead = [{"a": f"n{quadric}", "b": f"n{v}"} for v in near[1:]]
    build = compiled(tmp_path, inventory(dead_links=dead))
    protected = Forwarding(protect="node")
    both = ProofOptions(failures=("link", "node"))
    report = verify(replace(build, forwarding=protected), both)
    assert [f.cut_off for f in report.failures] == [2 * 12, 2 * 11]
    assert [f.lost_pairs for f in report.failures] == [2 * 12, 2 * 11]
    assert report.broken == ()
    bare = verify(replace(without_protection(build), forwarding=protected), both)
    assert [f.cut_off for f in bare.failures] == [2 * 12, 2 * 11]
    assert all(f.lost_pairs > f.cut_off for f in bare.failures)
    assert bare.broken == bare.failures


@pytest.mark.parametrize("q", [5, 7])
def test_what_is_left_repairs_itself(q: int) -> None:
    """Constructed repairs would lose pairs here: they count on rows that are others now."""
    whole = replace(routed(q=q), forwarding=Forwarding(protect="node"))
    build = damaged(whole, at_random(whole, 0, 2, 3), BOTH)
    report = verify(build, ProofOptions(failures=("link", "node")))
    assert [f.lost_pairs for f in report.failures] == [0, 0]
    assert report.failures[1].cases == len(build.wiring.names) - 2


def test_both_ends_of_a_link_die(tmp_path: Path) -> None:
    """Whichever end a disabled port is at, and in whichever order a dead link is written."""
    compiled(tmp_path, inventory())
    loaded = load_fabric(tmp_path / "fabric.yaml")
    whole = load(tmp_path / "build").wiring
    u, v = 0, int(whole.far[0, 0])
    assert loaded.inventory
    for change in (
        {"dead_links": [{"a": f"n{u}", "b": f"n{v}"}]},
        {"dead_links": [{"a": f"n{v}", "b": f"n{u}"}]},
        {"u": u, "port": int(whole.port[u, 0])},
        {"u": v, "port": int(whole.far_port[u, 0])},
    ):
        content = inventory(**({} if "u" in change else change))
        if "u" in change:
            nodes: list[dict[str, object]] = content["nodes"]  # type: ignore[assignment]
            nodes[change["u"]]["disabled_ports"] = [f"eth{change['port']}"]  # type: ignore[index]
        damage = damage_of(Inventory.model_validate(content), whole)
        expected = np.zeros_like(damage.links)
        expected[u, 0] = True
        expected[v] = whole.far[v] == u
        assert (damage.links == expected).all()
        assert not damage.absent.any()
