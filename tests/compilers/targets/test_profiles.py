"""Names of OpenFlow profiles."""

from dataclasses import replace
from re import findall

import pytest
from click.testing import CliRunner

from compilers.targets.openflow.profiles import OVS, PROFILES, profile_notes, profile_of
from polarfab.commands.builds.verify import command
from polarfab.fabric import Fabric


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_of_the_inventory_keeps_its_name(name):
    """A limit that the inventory adds made openflow13 a few-buckets in what `compile` prints."""
    plain = PROFILES[name]
    assert profile_of({"profile": name}) == plain
    assert profile_of({"profile": name, "buckets": plain.buckets}) == plain
    changed = profile_of({"profile": name, "buckets": 16, "masks": not plain.masks})
    masks = str(not plain.masks).lower()
    assert changed.name == f"{name} with buckets=16, masks={masks}"
    assert replace(changed, name=name, buckets=plain.buckets, masks=plain.masks) == plain


def test_the_controller_names_a_profile_that_it_lowers_by_the_nearest():
    inventory = profile_of({"buckets": 16})
    assert inventory.name == "openflow13-ovs with buckets=16"
    assert inventory.within(OVS) == inventory
    assert inventory.within(PROFILES["single-table"]).name == "few-buckets, single-table"


@pytest.mark.parametrize(
    ("keys", "missing"),
    [
        ({}, ()),
        ({"buckets": 100}, ("groups of any size",)),
        ({"fast_failover": False}, ("fast failover",)),
        ({"profile": "openflow13"}, ("extensions", "metadata masks")),
        ({"profile": "single-table", "experimenters": True, "masks": True}, ("separate tables",)),
    ],
)
def test_a_profile_names_what_marks_need_and_it_lacks(keys, missing):
    """A limit of 100 buckets was said to have no masks, extensions and tables of their own."""
    profile = profile_of(keys)
    assert profile.missing_for_marks == missing
    assert profile.marks == (not missing)


WITH_REPAIR = {"balance": "compact-valiant", "protect": "link"}
TO_NEIGHBOURS = {(2, 3, 4), (1, 2, 4)}
"""The minimal port and the repair ports of routes to neighbours, which have no alternates."""
FARTHER = {(1, 2, 3, 5), (1, 2, 4, 5), (1, 3, 4, 5), (2, 3, 4, 5)}
"""The same ports of other routes, and the port of the host, whose packets have alternates."""


def of_profile(name, routing):
    """A small fabric of switches of a profile."""
    leaf = {"ports": [{"count": 8}], "openflow": {"profile": name}}
    inventory = {"node_types": {"leaf": leaf}, "generate": {"type": "leaf"}}
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "routing": routing}
    return Fabric.from_spec(spec, inventory).compile()


@pytest.mark.parametrize(
    ("routing", "expected"), [({}, {()}), (WITH_REPAIR, TO_NEIGHBOURS | FARTHER)]
)
def test_a_route_of_a_single_table_has_a_row_for_each_port_with_another_group(
    routing, expected, tmp_path
):
    """The notes of compile promised a row for each ingress port, where one row is enough."""
    fabric = of_profile("single-table", routing)
    (note,) = profile_notes(fabric.build)
    assert "one more row for each port whose packets have another group" in note
    fabric.render("ovs", tmp_path, check=False)
    rows = (tmp_path / "n0" / "flows.txt").read_text()
    ports = {
        tuple(sorted(int(port) for port in findall(rf"in_port=(\d+),.*ip_dst={route}", rows)))
        for route in findall(r"priority=60,.*ip_dst=([^,]+)", rows)
    }
    assert ports == expected


@pytest.mark.parametrize("name", sorted({*PROFILES} - {OVS.name}))
def test_the_notes_say_what_a_profile_cannot_repair(name):
    """Of `few-buckets` they left out the alternates: it was said to repair by its controller."""
    fabric = of_profile(name, WITH_REPAIR)
    (note,) = profile_notes(fabric.build)
    profile = PROFILES[name]
    assert ("the switch does not repair" in note) == (not profile.repairs)
    assert ("a group of alternates sends to dead ports" in note) == (not profile.select_liveness)


@pytest.mark.parametrize(
    ("name", "words", "count"),
    [("few-buckets", [], 1), ("few-buckets", ["--quick"], 0), ("openflow13-ovs", [], 0)],
)
def test_verify_says_of_failures_that_switches_do_not_repair_as_the_tables(
    name, words, count, tmp_path
):
    """`proved: link failures` was all that it said."""
    of_profile(name, WITH_REPAIR).save(tmp_path / "build", prove=False)
    result = CliRunner().invoke(command, [str(tmp_path / "build"), *words], catch_exceptions=False)
    assert result.exit_code == 0
    note = f"failures were tried on the tables; node type leaf, OpenFlow profile {name}: the switch"
    assert result.stderr.count(note) == count
