"""Marked spread: every path, length, failure and load against paths listed by hand; who refuses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.saturation import throughput
from compilers.expansion.grow import grow
from compilers.pipeline import compile_fabric
from compilers.proof.explanation import explain
from compilers.proof.failures.failure_walks import walk, walk_failures
from compilers.proof.lossless.channels import find_channels
from compilers.proof.name_lookup import find_failure
from compilers.proof.proof_options import ProofOptions
from compilers.proof.soundness.build_soundness import broken_claims
from compilers.proof.walks.delivery import verify
from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import repair_tables
from compilers.routing.marked_spread import onward_links, onward_ports
from compilers.spec.fabric_file import load_fabric
from compilers.tables.fib import Fib
from compilers.tables.folders.build_folder import save
from compilers.targets.openflow.emitted_messages import check_messages, message_text
from compilers.targets.openflow.encoder import Encoder
from compilers.wiring.damage import remaining_fabric
from inventory.problems import InputError
from tests.compilers.readers.emitted import IDENTITY, check, check_switch, write
from tests.compilers.routed import routed
from tests.compilers.routing.makers import (
    compiled,
    links_of,
    loads_by_hand,
    marked,
    paths_by_hand,
    some,
)
from tests.compilers.wiring.makers import missing

each_fabric = pytest.mark.parametrize(
    ("family", "q"), [("polarfly", 3), ("polarfly", 4), ("oft", 2)]
)


@each_fabric
def test_paths_are_those_of_the_rule(family: str, q: int) -> None:
    build, by_hand = marked(q, family=family), paths_by_hand(family, q)
    for pair in [pair for pair in by_hand if pair[0] % 4 == 0]:
        found, expected = explain(build, *pair), by_hand[pair]
        total = sum(found.weights)
        shares = [Fraction(weight, total) for weight in found.weights]
        alternates = zip((found.minimal, *found.alternates), shares, strict=True)
        assert {path: share for path, share in alternates if share} == expected
        assert all(len(path) <= 5 for path in expected)
        assert all(len(set(path)) == len(path) for path in expected)


@each_fabric
def test_loads_are_those_of_every_path(family: str, q: int) -> None:
    build, by_hand = marked(q, family=family), loads_by_hand(family, q)
    fluid, ends = Fluid.of(build), build.topology.endpoints
    f, order = fluid.forwarding, build.tables.switches
    random = np.random.default_rng(q)
    for amount in (random.random((order, order)), np.eye(order)[random.permutation(order)]):
        amount = amount * ~np.eye(order, dtype=np.bool_) * ends * ends[:, None]
        source, destination = np.nonzero(amount)
        traffic = Traffic(source, destination, amount[source, destination])
        found = fluid.loads_by_weights(traffic)
        for arc in np.flatnonzero(f.far_arc >= 0).tolist():
            link = arc // f.arcs_a_switch, int(f.far_arc[arc]) // f.arcs_a_switch
            assert found[arc] == pytest.approx((by_hand[link] * amount).sum())


@pytest.mark.parametrize(
    ("family", "q", "least"),
    [
        ("polarfly", 5, 0.445),
        ("oft", 3, 1),
    ],
)
def test_no_permutation_gets_less(family: str, q: int, least: float) -> None:
    """The worst for a link is an assignment of destinations to sources; (q + 1)/2 hosts."""
    from scipy.optimize import linear_sum_assignment  # not among the lowest versions

    peaks = []
    for load in loads_by_hand(family, q).values():
        chosen = linear_sum_assignment(load, maximize=True)
        peaks.append(load[chosen].sum())
    assert least - 1e-9 < 2 / ((q + 1) * max(peaks)) < least + 0.002


@pytest.mark.parametrize(("q", "share"), [(7, 0.4619)])
@pytest.mark.parametrize("pattern", ["tornado", "perm1hop"])
def test_patterns_get_what_the_theorem_says(q: int, share: float, pattern: str) -> None:
    found = throughput(marked(q, hosts=(q + 1) // 2), pattern, hosts=(q + 1) // 2)
    assert found.as_emitted is not None
    assert found.adaptive is None
    assert share <= found.as_emitted.share < share + 0.002
    assert found.minimal.share <= 2 / (q + 1) * 2


@pytest.mark.parametrize("pattern", ["longest"])
def test_an_oft_full_of_hosts_sends_half(pattern: str) -> None:
    """Of q + 1 a leaf, which `minimal` carries at 1/(q + 1)."""
    found = throughput(marked(3, family="oft", hosts=4), pattern, hosts=4)
    assert found.as_emitted is not None
    assert found.as_emitted.share == pytest.approx(0.5)
    assert found.minimal.share == pytest.approx(0.25)


@pytest.mark.parametrize(("q", "protect"), [(3, "none"), (4, "node")])
def test_every_pair_arrives_by_every_path_under_every_failure(q: int, protect: str) -> None:
    """In at most 4 links; 7 with a link down, 5 with a switch down; two failures lose nothing."""
    build = marked(q, protect)
    report = verify(build, ProofOptions())
    assert report.passed
    assert report.local is None  # walked
    assert report.alternates is not None
    assert (report.alternates.strays, report.alternates.max_hops) == (0, 4)
    most = {"link": (7, 3), "node": (5, 1), "2": (10, 7)}
    assert {f.kind: (f.max_hops, f.stretch) for f in report.failures} == {
        kind: most[kind] for kind in most if protect == "node" and (kind != "2" or q > 3)
    }
    found = find_channels(build, "valley", ("link", "node") if protect == "node" else ())
    assert found.is_deadlock_free
    assert found.count == (4 if protect == "node" else 3)


@pytest.mark.parametrize("protect", ["none", "node"])
@pytest.mark.parametrize("q", [2, pytest.param(5, marks=pytest.mark.long)])
def test_every_pair_of_an_oft_arrives_under_every_failure(q: int, protect: str) -> None:
    """In at most 4 links, and 8 with a link or a switch down; by 2 channels, or 4 with repair."""
    build = marked(q, protect, family="oft")
    report = verify(build, ProofOptions())
    assert report.passed
    assert report.alternates is not None
    assert (report.alternates.strays, report.alternates.max_hops) == (0, 4)
    kinds = ["link", "node"] if protect == "node" else []
    assert [(f.kind, f.lost_pairs, f.max_hops) for f in report.failures] == [
        (kind, 0, 8) for kind in kinds
    ]
    found = find_channels(build, "valley", kinds)
    assert found.is_deadlock_free
    assert found.count == (4 if kinds else 2)


def test_pairs_that_a_failure_takes_are_counted() -> None:
    """Without repair: a pair is lost if any way that live links leave meets the dead one."""
    build, towards = marked(3), [5]
    report = walk_failures(build, "link", destinations=np.array(towards))
    far, order = build.wiring.far, build.tables.switches
    lost = 0
    links = [(s, int(d)) for s in range(order) for d in far[s] if d > s]
    for link in links:
        word = "-".join(build.wiring.names[end] for end in link)
        dead = (find_failure(build, word),)
        for s, d in product(range(order), towards):
            lost += s != d and any(path.fault for path in explain(build, s, d, dead).failing)
    assert report.lost_pairs == lost > 0


@each_fabric
def test_repaired_tables_lead_every_marked_packet_on(family: str, q: int) -> None:
    """The controller's tables after each dead link: every path of hosts and of marks arrives."""
    build = marked(q, "link", family=family)
    intact = IntactBuild.of(build)
    links = links_of(build)
    for u, k in some(links, 8):
        damage = missing(build.wiring, [], [(u, k)])
        topology, wiring = remaining_fabric(build.topology, build.wiring, damage)
        tables = repair_tables(intact, damage.links).tables
        after = replace(build, topology=topology, wiring=wiring, tables=tables)
        found = walk(after, ()).alternates
        assert found.strays == 0
        assert found.max_hops <= {"polarfly": 7, "oft": 8}[family]


@pytest.mark.parametrize("q", [3, 4])
def test_no_repaired_table_sends_marked_packets_where_none_can_leave(q: int) -> None:
    """With two of its links, or three, a switch has none for what comes in by a third one."""
    build = marked(q, "link")
    intact = IntactBuild.of(build)
    for u in (0, len(build.wiring.far) - 1):
        links = [(u, k) for k in np.flatnonzero(build.wiring.far[u] >= 0).tolist()]
        for failed in combinations(links, q - 1):
            damage = missing(build.wiring, [], list(failed))
            topology, wiring = remaining_fabric(build.topology, build.wiring, damage)
            tables = repair_tables(intact, damage.links).tables
            after = replace(build, topology=topology, wiring=wiring, tables=tables)
            assert walk(after, ()).alternates.strays == 0


def test_too_many_failures_to_follow_are_refused() -> None:
    with pytest.raises(InputError, match="fewer than 2 failures at once where packets are marked"):
        walk_failures(marked(3), "2")


@pytest.mark.parametrize(("family", "q"), [("polarfly", 4), ("oft", 2)])
def test_a_switch_spreads_over_all_links_but_the_last_and_its_apex(family: str, q: int) -> None:
    """Nor to the twin of the switch behind it, in an OFT the other leaf with the same point."""
    wiring = marked(q, family=family).wiring
    far = wiring.far
    for block, usable in onward_links(wiring):
        for r, links in enumerate(usable, block.start):
            for k, s in enumerate(far[r].tolist()):
                after = set(far[r][links[k]].tolist())
                if s < 0:
                    assert not after
                    continue
                twins = {w for w in range(len(far)) if (far[w] == far[s]).all()}
                assert (len(twins) == 2) == (family == "oft" and far[s, q + 1] < 0)
                near = set(far[r][far[r] >= 0].tolist())
                assert after == near - twins - set(far[s].tolist())
                ports = onward_ports(wiring, r)[k]
                assert ports[ports > 0].tolist() == wiring.port[r][links[k]].tolist()


def test_soundness_wants_all_links_in_every_class() -> None:
    build = marked(4)
    assert not broken_claims(build).count
    classes = build.tables.classes
    alternate, weight = np.array(classes.alternate), np.array(classes.weight)
    alternate[5, 7, -1] = weight[5, 7, -1] = 0
    wrong = replace(classes, alternate=alternate, weight=weight)
    found = broken_claims(replace(build, tables=replace(build.tables, classes=wrong)))
    assert found.count == 1


@pytest.mark.parametrize(("method", "fault"), [("fan", "back"), ("quadric", "stuck")])
def test_grown_fabrics_refuse_marks_as_packets_would_come_back(method: str, fault: str) -> None:
    """Or would have no link: counted in the larger fabric, by the rule of marks in a whole one."""
    with pytest.raises(InputError, match=r"marked packets come back .*, given spread; compile it"):
        grow(marked(3), method, 1)
    larger = grow(routed(q=3, spread=True), method, 1).build
    near = [set(row[row >= 0].tolist()) for row in larger.wiring.far]
    fib = Fib.of(larger.tables, larger.wiring.far_by_port())
    after = fib.next_switch(np.arange(len(near)))
    found = set()
    for r in range(len(near)):
        for s in near[r]:
            onward = [w for w in near[r] - near[s] - {s} if near[w] != near[s]]
            far = set(range(len(near))) - near[r] - {r, s}
            found |= {"stuck"} if far and not onward else set()
            found |= {"back" for d in far for w in onward if after[w, d] == r}
    assert fault in found


def test_a_fabric_with_a_dead_link_is_refused(tmp_path: Path) -> None:
    topology = "name: lab\ntopology: {family: polarfly, q: 3}\ninventory: hardware.yaml\n"
    (tmp_path / "fabric.yaml").write_text(topology + "routing: {balance: spread}\n")
    hardware = tmp_path / "hardware.yaml"
    hardware.write_text("generate: {type: copackaged-4x8}\n")
    assert compile_fabric(load_fabric(tmp_path / "fabric.yaml")).balance == "spread"
    one, other = 5, int(marked(3).wiring.far[5, 0])
    hardware.write_text(
        f"generate: {{type: copackaged-4x8}}\ndead_links: [{{a: n{one}, b: n{other}}}]\n"
    )
    with pytest.raises(InputError, match="a balance without marks in a damaged fabric"):
        compile_fabric(load_fabric(tmp_path / "fabric.yaml"))


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("flows.txt", ",goto_table:1", None, "marked ip"),
        ("flows.txt", "write_metadata:0x20000/0x20000,", "", "marked ip"),
        ("flows.txt", "members:", "members:1,", "spread"),
        ("flows.txt", "udp,5,hrw", "udp,6,hrw", "spread"),
        ("flows.txt", "0x2c000,actions=bundle", "0x28000,actions=bundle", "spread"),
        ("flows.txt", "write_metadata:16388/0xffff", "write_metadata:4/0xffff", "neighbour"),
        ("flows.txt", "table=2,priority=1,", "table=2,priority=4,", "priority=4"),
        ("groups.txt", "set_field:02:50:46:80:00:01->eth_dst,", "", "with a mark"),
        ("groups.txt", "02:50:46:80:00:01", "02:50:46:90:00:01", "which no row takes"),
    ],
)
def test_what_ovs_is_given_is_read_back(
    name: str, old: str, new: str | None, says: str, tmp_path: Path
) -> None:
    """One line of a switch is wrong."""
    build = replace(marked(3, "link"), identity=IDENTITY)
    write("ovs", build, tmp_path)
    path = tmp_path / "5" / name
    text = path.read_text()
    assert old in text
    if new is None:  # the whole row
        line = next(line for line in text.split("\n") if "0x20000" in line)
        path.write_text(text.replace(line + "\n", ""))
    else:
        path.write_text(text.replace(old, new, 1))
    found = check_switch("ovs", build, tmp_path, 5)
    assert found.differences
    assert any(says in str(each) for each in found.examples)


@pytest.mark.parametrize(("family", "q"), [("polarfly", 3)])
def test_text_is_that_of_the_tables_and_messages_are_its_rows(
    family: str, q: int, tmp_path: Path
) -> None:
    build = save(marked(q, "link", family=family), tmp_path / "b")
    write("ovs", build, tmp_path)
    assert not check("ovs", build, tmp_path).differences
    assert not check_messages(build).differences
    encoder = Encoder(build)
    for v in range(build.tables.switches):
        flows = message_text(b"".join(encoder.program(v).parts)).flows
        assert len(flows) == encoder.row_count(v)
        spread = np.count_nonzero(build.wiring.far[v] >= 0)
        assert sum("bundle(" in row for row in flows) == spread


def test_a_projective_network_is_refused_and_valiant_proposed() -> None:
    with pytest.raises(InputError, match=r"required another balance in a pn, .* write valiant"):
        compiled({"family": "pn", "q": 3}, balance="spread", transit="minimal")


@pytest.mark.parametrize("target", ["srlinux", "srv6"])
def test_who_cannot_carry_marks_refuses_by_name(target: str, tmp_path: Path) -> None:
    build = replace(marked(3), identity=IDENTITY)
    said = f"required minimal( or [a-z-]+)*, as target {target}.* cannot do "
    said += ".*packets marked for the next switch"
    with pytest.raises(InputError, match=said):
        write(target, build, tmp_path)


def test_a_switch_without_masks_is_refused_at_compile() -> None:
    leaf = {"ports": [{"name": "a{}", "count": 8}], "openflow": {"profile": "openflow13"}}
    hardware = {
        "node_types": {"leaf": leaf},
        "nodes": [{"name": f"n{v}", "type": "leaf"} for v in range(13)],
    }
    fabric = {
        "name": "lab",
        "topology": {"family": "polarfly", "q": 3},
        "routing": {"balance": "spread"},
        "system": "ovs",
        "inventory": hardware,
    }
    with pytest.raises(InputError, match="openflow13, which has no extensions or metadata masks,"):
        compile_fabric(load_fabric(fabric))
    leaf["openflow"] = {"profile": "openflow13-ovs"}
    assert compile_fabric(load_fabric(fabric)).balance == "spread"
