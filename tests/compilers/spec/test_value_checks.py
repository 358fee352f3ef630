"""Each check between values has a document that it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from compilers.demand.demand_file import read_demand
from compilers.spec.fabric_file import load_fabric
from inventory.problems import InputError
from inventory.yamlfile import TextFile
from polarfab.fabric import Fabric
from tests.compilers.fabrics import polarfly_build

BASE: dict[str, Any] = {"name": "lab", "topology": {"family": "polarfly", "q": 2}}
BUFFER = {
    **{"priorities": [3], "size": 1000, "cell": 100, "cable": 10, "reaction": 10},
    **{"ecn_min": 10, "ecn_max": 20, "ecn_percent": 1},
}


def fabric(**more: Any) -> tuple[dict[str, Any], None]:
    return {**BASE, **more}, None


def managed(address: str, **management: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    said = {"management": {"length": 24, **management}} if management else {}
    nodes = [{"name": f"n{n}", "type": "switch-32"} for n in range(7)]
    nodes[0]["management"] = address
    return {**BASE, "base": said}, {"nodes": nodes}


def named(*names: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return dict(BASE), {"nodes": [{"name": name, "type": "switch-32"} for name in names]}


def buffered(**more: int) -> tuple[dict[str, Any], dict[str, Any]]:
    kind = {"ports": [{"count": 8}], "buffer": {**BUFFER, **more}}
    nodes = [{"name": f"n{n}", "type": "t"} for n in range(7)]
    return dict(BASE), {"node_types": {"t": kind}, "nodes": nodes}


def guid(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    spec, inventory = named(*(f"n{n}" for n in range(7)))
    inventory["nodes"][0]["guid"] = text
    return spec, inventory


WRONG = {
    "a share without alternates": (fabric(routing={"minimal_share": 0.5}), "routing.minimal_share"),
    "disjoint of nothing": (fabric(routing={"disjoint": "edge"}), "routing.disjoint"),
    "a clock twice": (fabric(base={"ntp": ["192.0.2.1", "192.0.2.1"]}), r"base.ntp\[1\]"),
    "a gateway that is the network": (
        fabric(base={"management": {"length": 24, "gateway": "192.0.2.0"}}),
        "the network itself",
    ),
    "a length of another kind": (
        fabric(base={"management": {"length": 64, "gateway": "192.0.2.1"}}),
        "base.management.length",
    ),
    "too many AS numbers": (fabric(base={"asn": 4294967290}), "base.asn"),
    "a reserved AS number": (fabric(base={"asn": 65530}), "65,535, which is reserved"),
    "the network's address": (managed("192.0.2.0", length=24), "the network itself"),
    "the broadcast address": (managed("192.0.2.255", length=24), "broadcast"),
    "the gateway's address": (managed("192.0.2.1", gateway="192.0.2.1"), "the gateway's"),
    "a loopback": (managed("127.0.0.1"), r"nodes\[0\].management"),
    "all ones": (managed("255.255.255.255"), r"nodes\[0\].management"),
    "another's number": (named("a", "0", "b", "c", "d", "e", "f"), r"nodes\[1\].name"),
    "a cell of more than all": (buffered(cell=2000), "buffer.cell"),
    "a mark beyond the memory": (buffered(ecn_max=2000), "buffer.ecn_max"),
    "no GUID": (guid("0x0000000000000000"), r"nodes\[0\].guid"),
    "every GUID": (guid("ffff:ffff:ffff:ffff"), r"nodes\[0\].guid"),
}


@pytest.mark.parametrize("what", WRONG)
def test_nonsense_is_refused(what: str) -> None:
    (spec, inventory), said = WRONG[what]
    with pytest.raises(InputError, match=said) as error:
        load_fabric(spec, inventory=inventory)
    assert len(error.value.problems) == 1


IN_BLOCKS = {
    "a clock": (fabric(base={"ntp": ["10.0.0.2"]}), r"base.ntp\[0\]"),
    "a log": (fabric(base={"syslog": ["192.0.2.1", "fd00::9"]}), r"base.syslog\[1\].*fd00::/64"),
    "a gateway": (
        fabric(base={"management": {"length": 24, "gateway": "10.0.0.1"}}),
        "base.management.gateway",
    ),
    "a node": (managed("10.0.0.2"), r"nodes\[0\].management"),
    "the other plane": (fabric(planes=2, base={"ntp": ["10.0.128.5"]}), "10.0.128.4/30"),
}


@pytest.mark.parametrize("what", IN_BLOCKS)
def test_management_and_servers_are_no_hosts(what: str) -> None:
    (spec, inventory), said = IN_BLOCKS[what]
    spec |= {"addressing": {"ipv4": "10.0.0.0/16", "ipv6": "fd00::/56"}}
    with pytest.raises(InputError, match=said) as error:
        Fabric.from_spec(spec, inventory).compile()
    assert len(error.value.problems) == 1


@pytest.mark.parametrize("planes", [1, 2])
def test_blocks_of_hosts_are_where_they_were_before(planes: int) -> None:
    """Blocks stayed at 10.4.0.128, and 10.4.0.0 was taken for the first of them."""
    old = {**BASE, "planes": planes, "addressing": {"ipv4": "10.4.0.128/25"}}
    new = {**old, "addressing": {"ipv4": "10.4.0.0/24"}}
    ours, free = ("10.4.0.130", "10.4.0.2") if planes == 1 else ("10.4.0.194", "10.4.0.66")
    before = Fabric.from_spec(old).compile()
    Fabric.from_spec({**new, "base": {"ntp": [free]}}).compile(before)
    with pytest.raises(InputError, match=r"base.ntp\[0\]: required a server outside"):
        Fabric.from_spec({**new, "base": {"ntp": [ours]}}).compile(before)


def test_blocks_of_hosts_keep_their_length() -> None:
    """A seventh block of four addresses was taken for a fourteenth of two hosts fewer."""
    before = Fabric.from_spec({**BASE, "hosts_per_node": 5}).compile()
    with pytest.raises(InputError, match=r"10.0.0.48/29"):
        Fabric.from_spec({**BASE, "base": {"ntp": ["10.0.0.50"]}}).compile(before)


@pytest.mark.parametrize(
    "given",
    [
        fabric(routing={"protect": "link", "disjoint": "edge"}),
        fabric(base={"ntp": ["10.1.0.2"], "asn": 4294967288}),
        managed("10.255.0.1"),
        managed("192.0.2.2", gateway="192.0.2.1"),
        named(*"0123456"),
        named("64512", *"abcdef"),
        buffered(cell=1000),
    ],
)
def test_sense_is_taken(given: tuple[dict[str, Any], dict[str, Any] | None]) -> None:
    load_fabric(given[0], inventory=given[1])


def test_a_demand_twice() -> None:
    text = "source,destination,rate\n0,1,2\n1,0,3\n0,1,2\n"
    with pytest.raises(InputError, match="each pair of names once, given 0 to 1, also in line 2"):
        read_demand(TextFile("demand.csv", text, ""), polarfly_build(2).wiring)
