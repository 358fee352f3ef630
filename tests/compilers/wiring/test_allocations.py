"""Numbers that stay: whatever happens to an inventory, nothing changes that does not have to."""

from __future__ import annotations

import random
import re
from copy import deepcopy
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compilers.cabling.cable_plan import cables_of
from compilers.cabling.installed_numbers import numbers_in
from compilers.spec.allocations import (
    CABLE,
    LINK,
    AllocatedNumbers,
    Allocations,
    assign_numbers,
)
from compilers.spec.allocations_file import read_allocations, text_of
from compilers.tables.build import Build
from compilers.targets.routed.link_addresses import link_pairs
from compilers.update.compare import host_changes
from compilers.update.renumbering import BUNDLE_LABEL, LABEL, renumberings
from compilers.update.switch_settings import CABLE as CABLE_SETTING
from compilers.update.switch_settings import SettingChange, setting_changes
from compilers.wiring.as_numbers import as_numbers
from inventory.asn_range import LAST_AS
from inventory.problems import InputError
from polarfab.fabric import Fabric

Inventory = dict[str, Any]
SPEC = {
    "name": "hall",
    "topology": {"family": "polarfly", "q": 2},
    "hosts_per_node": 3,
    "addressing": {"ipv4": "10.4.0.0/24"},
}
TYPES = {
    "leaf": {"ports": [{"name": "eth{}", "count": 8}]},
    "large": {"ports": [{"name": "eth{}", "count": 16}]},
    "other": {"ports": [{"name": "p{}", "count": 9}]},
}


def hall() -> Inventory:
    """Seven nodes in two racks, each with a host."""
    return {
        "node_types": {"leaf": TYPES["leaf"]},
        "racks": [{"name": "A", "units": 12}, {"name": "B", "units": 12}],
        "nodes": [
            {
                "name": f"n{n}",
                "type": "leaf",
                "serial": f"S{n}",
                "rack": "AB"[n % 2],
                "hosts": [{"name": f"h{n}"}],
            }
            for n in range(7)
        ],
    }


def ports(build: Build) -> dict[tuple[int, int], str]:
    """The port of each link at the first of its vertices."""
    return build.wiring.port_name_of_link()


@dataclass
class Changes:
    """An inventory and a spec after random changes, and what had to change with them."""

    inventory: Inventory
    spec: dict[str, Any]
    retyped: set[str]

    def make(self, kind: str, which: random.Random) -> None:
        """Change a node, or all of them."""
        nodes = self.inventory["nodes"]
        node = which.choice(nodes)
        new = f"{which.randrange(1 << 30)}"
        match kind:
            case "type":
                self.inventory["node_types"]["spare"] = {"ports": [{"name": "x{}", "count": 64}]}
            case "larger model":
                node["type"] = which.choice(["large", "other"])
                self.inventory["node_types"][node["type"]] = TYPES[node["type"]]
                self.retyped.add(node["serial"])
            case "rename":
                node["name"] = f"n{new}"
            case "replace":
                self.retyped.discard(node["serial"])
                node["serial"] = f"S{new}"
                self.retyped |= {node["serial"]} if node["type"] != "leaf" else set()
            case "rack":
                node["rack"] = "B" if node["rack"] == "A" else "A"
            case "host":
                node["hosts"] = [*node["hosts"][:2], {"name": f"h{new}"}]
            case "host gone":
                node["hosts"] = node["hosts"][1:]
            case "order":
                which.shuffle(nodes)
                for one in nodes:
                    which.shuffle(one["hosts"])
            case "pool":
                self.spec["addressing"] = {"ipv4": which.choice(["10.4.0.0/16", "10.0.0.0/8"])}


KINDS = "type", "larger model", "rename", "replace", "rack", "host", "host gone", "order", "pool"


@pytest.fixture(scope="module")
def first() -> Fabric:
    return Fabric.from_spec(SPEC, hall()).compile()


def test_cables_that_need_another_length_are_named(first: Fabric) -> None:
    inventory = hall()
    for rack, row in zip(inventory["racks"], (0, 3), strict=True):
        rack |= {"row": row, "column": 0}
    old, new = first.compiled[0], Fabric.from_spec(SPEC, inventory).compile(first).compiled[0]
    named = {change.name: change for change in setting_changes(old, new)}
    before, after = (cables_of(b.wiring, b.hardware) for b in (old, new) if b.hardware)
    racks = before.hardware.rack[before.ends]
    moved = before.number[racks[:, 0] != racks[:, 1]].tolist()
    assert sorted(named) == [f"C{number:05d}" for number in sorted(moved)]
    change = named[f"C{moved[0]:05d}"]
    was, now = (c.length[c.number == moved[0]].item() for c in (before, after))
    assert change == (CABLE_SETTING, change.name, "length", f"{was:g} m", f"{now:g} m")
    assert was < now
    assert setting_changes(new, new) == ()


def test_limits_of_a_node_type_that_change_are_shown_in_words(first: Fabric) -> None:
    """They were shown as Python's dictionaries."""
    inventory = hall()
    inventory["node_types"]["leaf"] = TYPES["leaf"] | {"tables": {"lpm_rows": 50, "groups": 40}}
    new = Fabric.from_spec(SPEC, inventory).compile(first).compiled[0]
    (change,) = setting_changes(first.compiled[0], new)
    assert change[1:] == ("leaf", "limits", "none", "lpm_rows=50, groups=40")
    assert setting_changes(new, first.compiled[0])[0][3:] == ("lpm_rows=50, groups=40", "none")


def test_cables_of_a_switch_that_is_gone_are_not_those_of_one_with_its_name() -> None:
    """The lengths of the former were compared with those of the latter."""
    inventory = hall()
    for rack, row in zip(inventory["racks"], (0, 3), strict=True):
        rack |= {"row": row, "column": 0}
    first = Fabric.from_spec(SPEC, inventory).compile()
    inventory["nodes"][4]["rack"] = "B"

    def lengths(nodes: list[dict[str, Any]]) -> list[SettingChange]:
        """The lengths that differ if the inventory has these nodes."""
        new = Fabric.from_spec(SPEC, inventory | {"nodes": nodes}).compile(first)
        changes = setting_changes(first.compiled[0], new.compiled[0])
        return [change for change in changes if change.kind == CABLE_SETTING]

    moved = lengths(inventory["nodes"])
    assert moved
    for here, there in ((1, 2), (2, 1)):
        nodes = deepcopy(inventory["nodes"])
        nodes[here]["name"] = nodes[there]["name"]
        nodes[there] |= {"name": "n7", "serial": "S7"}
        assert lengths(nodes) == moved


@settings(max_examples=15, deadline=None)
@given(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4), seed=st.integers(0, 1 << 30))
def test_nothing_changes_that_does_not_have_to(first: Fabric, kinds: list[str], seed: int) -> None:
    changes = Changes(hall(), deepcopy(SPEC), set())
    which = random.Random(seed)  # noqa: S311
    for kind in kinds:
        changes.make(kind, which)
    after = Fabric.from_spec(changes.spec, changes.inventory).compile(first)
    old, new = first.compiled[0], after.compiled[0]
    assert {number.kind for number in renumberings(old, new)} <= {BUNDLE_LABEL}
    assert {number.owner for number in renumberings(old, new)} <= cables_of_moved(old, new)
    assert new.allocations.of(LINK) == old.allocations.of(LINK)
    labels = [
        dict(zip(numbers_in(b).of(CABLE).used, numbers_in(b).of(CABLE).used.values(), strict=True))
        for b in (old, new)
    ]
    assert labels[0] == labels[1]
    assert new.hardware is not None
    stay = [v for v, serial in enumerate(new.hardware.serial) if serial not in changes.retyped]
    before, now = ports(old), ports(new)
    assert {e: now[e] for e in now if e[0] in stay} == {e: before[e] for e in now if e[0] in stay}
    moved = {name for name, _, _ in host_changes(old, new).moved}
    assert not moved & {h for v in stay for h in new.wiring.host_names[v * 3 : v * 3 + 3]}


def racks(build: Build) -> list[str]:
    """The name of each node's rack."""
    assert build.hardware is not None
    return [build.hardware.rack_names[rack] for rack in build.hardware.rack]


def cables_of_moved(old: Build, new: Build) -> set[str]:
    """The cables of switches that are in another rack, by their ends in words."""
    moved = [was != now for was, now in zip(racks(old), racks(new), strict=True)]
    names = new.wiring.names
    edges = new.topology.graph.edges().tolist()
    return {f"{names[u]} to {names[v]}" for u, v in edges if moved[u] or moved[v]}


def bundles(build: Build) -> dict[str, str]:
    """The number of each cable's bundle by the cable plan, by the cable's ends in words."""
    assert build.hardware is not None
    cables, names = cables_of(build.wiring, build.hardware), build.wiring.names
    numbers = [*map(str, cables.bundles.number.tolist()), "none"]
    ends = np.sort(cables.ends, axis=1).tolist()
    return {
        f"{names[u]} to {names[v]}": numbers[bundle]
        for (u, v), bundle in zip(ends, cables.bundle.tolist(), strict=True)
    }


def test_a_switch_in_another_rack_is_named_with_the_bundles_of_its_cables(first: Fabric) -> None:
    inventory = hall()
    inventory["nodes"][3]["rack"] = "A"
    old, new = first.compiled[0], Fabric.from_spec(SPEC, inventory).compile(first).compiled[0]
    before, after = bundles(old), bundles(new)
    others = {ends for ends in before if before[ends] != after[ends]}
    named = renumberings(old, new)
    assert len(others) == len(named) > 0
    assert {(n.owner, n.old_number, n.new_number) for n in named} == {
        (e, before[e], after[e]) for e in others
    }


def test_an_unused_wide_type_changes_no_link() -> None:
    spare = hall()
    spare["node_types"] |= {"spare-64": {"ports": [{"name": "p{}", "count": 64}]}}
    one, other = (Fabric.from_spec(SPEC, i).compile().compiled[0] for i in (hall(), spare))
    assert (link_pairs(one) == link_pairs(other)).all()


def test_labels_are_on_the_cables_that_had_them(first: Fabric) -> None:
    inventory = hall()
    inventory["nodes"][3]["rack"] = "A"
    new = Fabric.from_spec(SPEC, inventory).compile(first).compiled[0]

    def labels(build: Build) -> dict[tuple[int, ...], int]:
        assert build.hardware is not None
        cables = cables_of(build.wiring, build.hardware)
        ends = (tuple(sorted(pair)) for pair in cables.ends.tolist())
        return dict(zip(ends, cables.number.tolist(), strict=True))

    assert labels(new) == labels(first.compiled[0])
    anew = Fabric.from_spec(SPEC, inventory).compile().compiled[0]
    assert labels(anew) != labels(new)


def test_freed_numbers_are_reserved_until_the_pool_is_full() -> None:
    had = AllocatedNumbers({"a": 0, "b": 1, "c": 2})
    without = assign_numbers(had, ["c"], 4)
    assert without == AllocatedNumbers({"c": 2}, {"a": 0, "b": 1})
    more = assign_numbers(without, ["c", "d"], 4)
    assert (more.used["d"], [*more.freed]) == (3, ["a", "b"])
    full = assign_numbers(more, ["c", "d", "e"], 4)
    assert (full.used["e"], [*full.freed]) == (0, ["b"])
    back = assign_numbers(more, ["c", "d", "b"], 4)
    assert (back.used["b"], [*back.freed]) == (1, ["a"])


def test_links_take_freed_numbers_when_their_own_pool_is_full(tmp_path: Path) -> None:
    """Numbers went on to a million, whatever pool fabric.yaml names."""
    nodes = [{"name": f"n{v}", "type": "leaf"} for v in range(11)]
    inventory = {"node_types": {"leaf": {"ports": [{"name": "e{}", "count": 3}]}}, "nodes": nodes}

    def ring(step: int) -> dict[str, Any]:
        """A ring of eleven links, none of which is in the ring of another step."""
        file = tmp_path / f"{step}.txt"
        file.write_text("".join(f"n{v} n{(v + step) % 11}\n" for v in range(11)))
        return {
            "name": "ring",
            "topology": {"family": "graph", "file": str(file)},
            "addressing": {"links": "10.9.0.0/26"},
        }

    first = Fabric.from_spec(ring(1), inventory).compile()
    second = Fabric.from_spec(ring(2), inventory).compile(first)
    third = Fabric.from_spec(ring(3), inventory).compile(second)
    before, after = (of.compiled[0].allocations.of(LINK) for of in (second, third))
    assert max(after.used.values()) < 32
    assert {*before.freed.values()} - {*after.freed.values()} == {next(iter(before.freed.values()))}


def test_an_undone_build_keeps_its_numbers_reserved() -> None:
    undone = Allocations({LINK: AllocatedNumbers({"a": 0, "b": 1, "c": 2}, {"d": 3})})
    again = Allocations({LINK: AllocatedNumbers({"a": 0, "c": 1})}).with_reserved(undone)
    assert again.of(LINK) == AllocatedNumbers({"a": 0, "c": 1}, {"d": 3})


def test_a_build_without_a_file_is_seeded_by_its_ports() -> None:
    """One that an earlier release compiled, or a fabric without an inventory."""
    bare = Fabric.from_spec({**SPEC, "hosts_per_node": 1}).compile()
    assert not bare.compiled[0].allocations
    larger = Fabric.from_spec(SPEC).compile(bare).compiled[0]
    assert (link_pairs(larger) == link_pairs(bare.compiled[0])).all()
    fresh = Fabric.from_spec(SPEC).compile().compiled[0]
    assert (link_pairs(fresh) != link_pairs(larger)).any()


def test_a_file_keeps_the_numbers_of_a_fabric_without_its_build(tmp_path: Path) -> None:
    file = tmp_path / "numbers.csv"
    spec = {**SPEC, "allocations": str(file)}
    old = Fabric.from_spec(spec, hall()).compile().compiled[0]
    file.write_text("".join(text_of([(0, old.allocations)])))
    assert read_allocations(file.read_text(), "") == {0: old.allocations}
    inventory = hall()
    changes = Changes(inventory, spec, set())
    which = random.Random(5)  # noqa: S311
    for kind in ("larger model", "rack", "order", "rename"):
        changes.make(kind, which)
    new = Fabric.from_spec(spec, inventory).compile().compiled[0]
    assert {number.kind for number in renumberings(old, new)} <= {BUNDLE_LABEL}
    assert {number.owner for number in renumberings(old, new)} <= cables_of_moved(old, new)
    assert new.allocations.of(CABLE) == old.allocations.of(CABLE)
    anew = Fabric.from_spec(SPEC, inventory).compile().compiled[0]
    assert LABEL in {number.kind for number in renumberings(old, anew)}


@pytest.mark.parametrize(
    ("ipv4", "hosts", "stay"),
    [
        ("10.4.0.0/16", 3, True),
        ("10.0.0.0/8", 3, True),
        ("10.4.0.0/16", 30, False),  # 7 blocks of 32 addresses, and planes were 128 apart
        ("10.5.0.0/16", 3, False),
    ],
)
def test_planes_keep_their_blocks_in_a_larger_pool(ipv4: str, hosts: int, stay: bool) -> None:
    spec = {**SPEC, "planes": 2}
    first = Fabric.from_spec(spec).compile()
    larger = {**spec, "addressing": {"ipv4": ipv4}, "hosts_per_node": hosts}
    new = Fabric.from_spec(larger).compile(first)
    pairs = zip(first.compiled, new.compiled, strict=True)
    assert [renumberings(*pair) == () for pair in pairs] == [stay, stay]
    one, two = (build.addressing.ipv4 for build in new.compiled)
    assert not one.overlaps(two)
    assert all(part.subnet_of(IPv4Network(ipv4)) for part in (one, two))
    again = Fabric.from_spec(larger).compile(new)
    assert [build.identity for build in again.compiled] == [b.identity for b in new.compiled]


@pytest.mark.parametrize("planes", [2, 3])
def test_planes_that_were_divided_anew_keep_their_blocks_in_a_larger_pool(planes: int) -> None:
    """Plane 1 keeps the beginning of its blocks, so planes are not equally far apart."""
    spec = {**SPEC, "planes": planes}
    steps = [("10.4.16.0/24", 3), ("10.4.0.0/16", 30), ("10.4.0.0/15", 30), ("10.0.0.0/8", 30)]
    if planes == 3:
        steps[0] = ("10.4.16.0/23", 3)
    fabric, builds = None, []
    for pool, hosts in steps:
        larger = {**spec, "addressing": {"ipv4": pool}, "hosts_per_node": hosts}
        fabric = Fabric.from_spec(larger).compile(fabric)
        builds.append(fabric.compiled)
    divided, *later = builds[1:]
    firsts = [build.addressing.first_addresses()["ipv4"] for build in divided]
    assert firsts[0] == int(IPv4Network("10.4.16.0/24")[0])
    for builds_then in later:
        assert [renumberings(*pair) for pair in zip(divided, builds_then, strict=True)] == [
            ()
        ] * planes
        pools = [build.addressing.ipv4 for build in builds_then]
        assert not any(a.overlaps(b) for n, a in enumerate(pools) for b in pools[:n])


def test_larger_blocks_of_supernodes_begin_where_an_aggregate_can() -> None:
    """10.4.1.0 begins a /24 with eight supernodes of /27, but no supernode of /23."""
    topology = {"family": "polarstar", "q": 2, "supernode": "inductive-quad", "degree": 3}
    spec = {"name": "star", "topology": topology}
    small = {"hosts_per_node": 1, "addressing": {"ipv4": "10.4.1.0/24"}}
    large = {"hosts_per_node": 40, "addressing": {"ipv4": "10.0.0.0/8"}}
    first = Fabric.from_spec(spec | small).compile()
    addressing = Fabric.from_spec(spec | large).compile(first).compiled[0].addressing
    blocks, aggregates = addressing.prefix_texts()[0][:56], addressing.prefix_texts()[0][56:]
    networks = [IPv4Network(aggregate) for aggregate in aggregates]
    assert [sum(IPv4Network(b).subnet_of(n) for b in blocks) for n in networks] == [8] * 7


def test_a_file_keeps_the_length_of_blocks(tmp_path: Path) -> None:
    file = tmp_path / "numbers.csv"
    spec = {**SPEC, "allocations": str(file)}
    old = Fabric.from_spec(spec, hall()).compile().compiled[0]
    file.write_text("".join(text_of([(0, numbers_in(old))])))
    new = Fabric.from_spec({**spec, "hosts_per_node": 1}, hall()).compile().compiled[0]
    assert renumberings(old, new) == ()


def test_blocks_stay_where_they_are_without_their_row(tmp_path: Path) -> None:
    """A file without the row of the pool renumbered every switch, though the build was there."""
    spec = {**SPEC, "addressing": {"ipv4": "10.4.0.128/25"}}
    before = Fabric.from_spec(spec, hall()).compile()
    lines = "".join(text_of([(0, numbers_in(before.compiled[0]))])).splitlines(keepends=True)
    file = tmp_path / "numbers.csv"
    file.write_text("".join(line for line in lines if ",pool," not in line))
    spec = {**SPEC, "allocations": str(file)}
    after = Fabric.from_spec(spec, hall()).compile(before)
    assert renumberings(before.compiled[0], after.compiled[0]) == ()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0,link,1-2/0,7,,", "a number of its own, not that of 0-1/0, given '7 for 1-2/0'"),
        ("0,link,0-1/0,8,,", "one number for link 0-1/0"),
        ("0,link,1-2/0,x,,", "a whole number, given x"),
        ("0,link,1-2/0,99999999999999999999,,", "a number of a link from 0 to 2,147,483,647"),
        (
            "0,link,2-1/0,9,,",
            "two vertices, the smaller first, and an index, such as 3-17/0, given 2-1/0",
        ),
        ("0,link,abc,9,,", "such as 3-17/0, given abc"),
        ("0,cable,1-2/0,0,,", "a number of a cable from 1"),
        ("0,host,x/db1,0,,", "a vertex and a name, such as 3/db1"),
        ("0,asn,n3,65001,,", "a vertex, given n3"),
        ("0,asn,before 3,65001,,", "a vertex, given 'before 3'"),
        ("0,asn,03,65001,,", "a vertex, given 03"),
        ("0,link,before 1-2/0,9,,", "such as 3-17/0, given 'before 1-2/0'"),
        ("0,link,1-9999999999/0,9,,", "such as 3-17/0, given 1-9999999999/0"),
        ("0,asn,3,4294967295,,", "a number of an asn from 1 to 4,294,967,294"),
        ("0,asn,3,65535,,", "an AS number that is not reserved, given 65535"),
        ("0,pool,ipv5,10.0.0.0,,", "ipv4 or ipv6 or length, given ipv5"),
        ("0,pool,length,31,,", "a number of a pool from 1 to 30, given 31"),
        ("0,pool,ipv4,10.0.0,,", "an address of ipv4, given 10.0.0"),
        ("0,pool,ipv4,10.4.0.129,,", "the first address of a /30, given 10.4.0.129"),
        ("0,pool,ipv6,fd00::1,,", "the first address of a /64, given fd00::1"),
        ("0,vertex,n0,7,,", "vertices from 0 to 0, as so many nodes are listed, given 7"),
        ("0,port,1-2/0,7,,", "one of vertex, link, cable, bundle, host, asn, pool, given port"),
        ("0,link,1-2/0,9,,,", "six columns"),
        ("0,link,1-2/0,9,soon,", "whole numbers in the columns plane and freed"),
        ("9999999999,link,1-2/0,9,,", "whole numbers in the columns plane and freed"),
        ("0,link,1-2/0,9,,\r0,link,1-3/0,8,,", "a line of CSV, given 'new-line character seen"),
    ],
)
def test_a_wrong_row_is_named(line: str, message: str) -> None:
    text = f"plane,kind,key,number,freed,name\n0,link,0-1/0,7,,\n{line}\n"
    with pytest.raises(InputError, match=rf"numbers.csv:3: required .*{re.escape(message)}"):
        read_allocations(text, "numbers.csv")


def as_numbers_of(build: Build) -> list[int]:
    """The AS number of each switch."""
    return as_numbers(build.base, build.wiring.names, build.allocations).tolist()


@pytest.mark.parametrize("inventory", [hall(), None], ids=["inventory", "none"])
@pytest.mark.parametrize("kept", ["build", "file"])
def test_switches_keep_their_as_numbers(
    inventory: dict[str, Any] | None, kept: str, tmp_path: Path
) -> None:
    """Another `base.asn` renumbered all of them: the neighbours of each had to be changed."""
    spec = SPEC | {"control_plane": {"routes": "ebgp"}, "base": {"asn": 65001}}
    first = Fabric.from_spec(spec, inventory).compile()
    assert as_numbers_of(first.build) == [*range(65001, 65008)]
    other = spec | {"base": {"asn": 4_200_001_000}}
    before: Fabric | None = first
    if kept == "file":
        rows = "".join(text_of([(0, numbers_in(first.build))]))
        assert "0,asn,6,65007,," in rows.splitlines()
        (tmp_path / "numbers.csv").write_text(rows)
        other, before = other | {"allocations": str(tmp_path / "numbers.csv")}, None
    second = Fabric.from_spec(other, inventory).compile(before)
    assert renumberings(first.build, second.build) == ()
    assert as_numbers_of(second.build) == as_numbers_of(first.build)
    third = Fabric.from_spec(spec | {"base": {}}, inventory).compile(second)
    assert as_numbers_of(third.build) == as_numbers_of(first.build)
    grown = second.expand("nucleus:1").build
    assert as_numbers_of(grown) == [*range(65001, 65008), 4_200_001_007]


def test_hosts_of_a_model_with_other_ports_are_said_to_move(first: Fabric) -> None:
    """Cables to other switches were named, but hosts whose ports only have other names were not."""
    inventory = hall()
    inventory["node_types"]["other"] = TYPES["other"]
    inventory["nodes"][2] |= {"type": "other", "serial": "S9"}
    new = Fabric.from_spec(SPEC, inventory).compile(first)
    moved = host_changes(first.build, new.build).moved
    assert {(was.split()[0], now.split()[1][0]) for _, was, now in moved} == {("n2", "p")}
    assert len(moved) == 3


def test_what_a_switch_gets_at_another_vertex_is_named() -> None:
    """Its block, loopback and AS number changed, and `nothing else changes` was said."""
    spec = SPEC | {"control_plane": {"routes": "ebgp"}, "base": {"asn": 65001}}
    first = Fabric.from_spec(spec, hall()).compile()
    names = first.build.wiring.names
    inventory = hall()
    for name, other in (("n2", "n5"), ("n5", "n2")):
        inventory["nodes"][int(name[1])]["vertex"] = names.index(other)
    new = Fabric.from_spec(spec, inventory).compile(first)
    changes = {
        (c.kind, c.owner): (c.old_number, c.new_number)
        for c in renumberings(first.build, new.build)
    }
    for name, other in (("n2", "n5"), ("n5", "n2")):
        was, now = names.index(name), names.index(other)
        blocks = (str(first.build.addressing.network(vertex)) for vertex in (was, now))
        assert changes["block of a switch", name] == (*blocks,)
        assert changes["AS number", name] == (str(65001 + was), str(65001 + now))


def test_a_node_gets_the_as_number_that_it_is_given() -> None:
    spec = SPEC | {"control_plane": {"routes": "ebgp"}}
    first = Fabric.from_spec(spec, hall()).compile()
    inventory = hall()
    inventory["nodes"][3]["asn"] = 65100
    new = Fabric.from_spec(spec, inventory).compile(first)
    (change,) = renumberings(first.build, new.build)
    assert (change.kind, change.owner, change.new_number) == ("AS number", "n3", "65100")
    inventory["nodes"][3]["asn"] = as_numbers_of(first.build)[5]
    with pytest.raises(InputError, match=r"nodes\[3\].asn: required an AS number of its"):
        Fabric.from_spec(spec, inventory).compile(first)


def test_blocks_stay_when_a_renumbered_build_was_taken_back(tmp_path: Path) -> None:
    """The file had the blocks of that build: the fabric got others, at the pool's beginning."""
    first = Fabric.from_spec(SPEC, hall()).compile()
    larger = SPEC | {"addressing": {"ipv4": "10.0.0.0/8"}}
    enlarged = Fabric.from_spec(larger, hall()).compile(first)
    other = SPEC | {"addressing": {"ipv4": "172.16.0.0/16"}}
    renumbered_build = Fabric.from_spec(other, hall()).compile(enlarged).build
    file = tmp_path / "numbers.csv"
    file.write_text("".join(text_of([(0, numbers_in(renumbered_build))])))
    back = Fabric.from_spec(larger | {"allocations": str(file)}, hall()).compile(enlarged)
    assert renumberings(enlarged.build, back.build) == ()


def test_a_new_switch_gets_no_as_number_that_another_has() -> None:
    """`expand` gave the next number, whoever had it; the larger fabric could not be compiled."""
    spec = SPEC | {"control_plane": {"routes": "ebgp"}, "base": {"asn": 65001}}
    inventory = hall()
    inventory["nodes"][3]["asn"] = 65008
    small = Fabric.from_spec(spec, inventory).compile()
    numbers = as_numbers_of(small.expand("nucleus:1").build)
    assert len({*numbers}) == len(numbers) == 8
    assert {*as_numbers_of(small.build)} < {*numbers}


def test_a_new_switch_gets_no_as_number_that_a_spare_is_given() -> None:
    """The larger build had one number twice in its allocations, so nothing could read it."""
    spec = SPEC | {"control_plane": {"routes": "ebgp"}, "base": {"asn": 65001}}
    spec |= {"topology": {"family": "polarfly", "q": 3}}
    nodes: list[dict[str, Any]] = [{"name": f"n{n}", "type": "large"} for n in range(13)]
    nodes.append({"name": "spare", "type": "large", "asn": 65015})
    inventory = {"node_types": {"large": TYPES["large"]}, "nodes": nodes}
    small = Fabric.from_spec(spec, inventory).compile()
    grown = small.expand("quadric:1").build
    numbers = as_numbers_of(grown)
    assert numbers[:13] == as_numbers_of(small.build)
    assert numbers[grown.wiring.names.index("spare")] == 65015
    assert len({*numbers}) == len(numbers) == 17
    nodes[-1]["asn"] = 65001
    small = Fabric.from_spec(spec, inventory).compile()
    message = r"nodes\.asn: required an AS number of its own for spare, given 65001, which n0 has"
    with pytest.raises(InputError, match=message):
        small.expand("quadric:1")


@pytest.mark.parametrize(
    ("first", "given"),
    [(4_294_967_288, "4,294,967,288, up to 4,294,967,295"), (65_528, "65,528, among them 65,535")],
)
def test_growth_beyond_the_as_numbers_is_refused(first: int, given: str) -> None:
    """The larger build had a number that its own reader refused."""
    spec = SPEC | {"control_plane": {"routes": "ebgp"}, "base": {"asn": first}}
    small = Fabric.from_spec(spec, hall()).compile()
    with pytest.raises(InputError, match=rf"base\.asn: required the first of 8 .*{given}"):
        small.expand("nucleus:1")
    spec["base"] = {"asn": 4_200_000_000}
    again = Fabric.from_spec(spec, hall()).compile(small)
    numbers = as_numbers_of(again.expand("nucleus:1").build)
    assert numbers == [*range(first, first + 7), 4_200_000_007]


def test_a_new_switch_gets_an_as_number_before_the_first_if_none_is_left_behind() -> None:
    """It got the number behind the last one, and nothing could read the larger build."""
    spec = SPEC | {"control_plane": {"routes": "ebgp"}, "base": {"asn": LAST_AS - 6}}
    small = Fabric.from_spec(spec, hall()).compile()
    spec["base"] = {"asn": LAST_AS - 7}
    again = Fabric.from_spec(spec, hall()).compile(small)
    numbers = as_numbers_of(again.expand("nucleus:1").build)
    assert numbers == [*range(LAST_AS - 6, LAST_AS + 1), LAST_AS - 8]


def test_an_as_number_stays_reserved_when_its_node_gets_another() -> None:
    spec = SPEC | {"control_plane": {"routes": "ebgp"}, "base": {"asn": 65001}}
    first = Fabric.from_spec(spec, hall()).compile()
    inventory = hall()
    inventory["nodes"][3]["asn"] = 65100
    vertex = first.build.wiring.names.index("n3")
    earlier = 65001 + vertex
    other = spec | {"base": {"asn": earlier - 7}}
    new = Fabric.from_spec(other, inventory).compile(first)
    assert new.build.allocations.of("asn").freed == {f"before {vertex}": earlier}
    assert as_numbers_of(new.expand("nucleus:1").build)[7] == 65008


def test_a_build_of_an_earlier_release_has_no_rows_of_as_numbers() -> None:
    spec = SPEC | {"control_plane": {"routes": "ebgp"}, "base": {"asn": 65001}}
    first = Fabric.from_spec(spec, hall()).compile().build
    rows = {kind: of for kind, of in first.allocations.numbers.items() if kind != "asn"}
    old = replace(first, allocations=replace(first.allocations, numbers=rows))
    assert as_numbers_of(old) == as_numbers_of(first)
    other = Fabric.from_spec(spec | {"base": {"asn": 65201}}, hall()).compile(Fabric.of(old)).build
    assert as_numbers_of(other) == as_numbers_of(first)
    without = Fabric.from_spec(SPEC, hall()).compile().build
    assert not without.allocations.of("asn")
