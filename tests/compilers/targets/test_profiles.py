"""Names of OpenFlow profiles."""

from dataclasses import replace

import pytest

from compilers.targets.openflow.profiles import OVS, PROFILES, profile_of


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
