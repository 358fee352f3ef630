"""Other forms in which devices print the same routes, and what only looks like a routing table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compilers.audit.route_table_file import device_texts, read_tables
from compilers.targets.frr.routing_tables import routes_of
from inventory.problems import InputError
from tests.compilers.audit.device_tables import DISCARD, PRINTERS

HOPS = [("10.1.0.1", "et-0/0/1", 1), ("10.1.0.3", "et-0/0/2", 1)]
ROUTES = {("main", "10.0.1.0/24"): [HOPS], ("main", "10.0.2.0/24"): [HOPS[:1]]}
ROUTES |= {("main", "10.0.0.0/16"): DISCARD, ("main", "fd00:1::/64"): [HOPS[1:]]}
BACKUPS = {("main", "10.0.1.0/24"): [HOPS[:1], HOPS[1:]], ("5001", "10.0.1.0/24"): [HOPS[1:]]}


def text(documents: list[Any]) -> str:
    return "\n".join(map(json.dumps, documents))


def held(documents: list[Any]) -> Any:
    return read_tables([(text(documents), "n1.json")])


def by(key: str) -> Callable[[list[Any]], list[Any]]:
    """FRR's documents as one, its routes by a value of theirs."""

    def nested(documents: list[Any]) -> list[Any]:
        parts: dict[str, Any] = {"0": {}} if key == "table" else {"Vrf-none": {}, "default": {}}
        for document in documents:
            for prefix, routes in document.items():
                for route in routes:
                    parts.setdefault(str(route[key]), {}).setdefault(prefix, []).append(route)
        return [parts]

    return nested


def by_vrf_and_table(documents: list[Any]) -> list[Any]:
    return [{"default": by("table")(documents)[0]}]


@pytest.mark.parametrize("nested", [by("table"), by("vrfName"), by_vrf_and_table])
def test_routes_of_frr_by_table_and_by_vrf(nested) -> None:
    """`table all` of FRR 10.8, `vrf all` of FRR 10.1, and both with a namespace a VRF."""
    documents = PRINTERS["frr"](ROUTES | BACKUPS)
    assert held(nested(documents)) == held(documents)
    flat = {prefix for document in nested(documents) for prefix, _ in routes_of(document)}
    assert flat == {prefix for one in documents for prefix, _ in routes_of(one)}


def test_empty_tables_of_frr() -> None:
    assert held([{"254": {}, "5001": {}}]).form == "frr"
    assert held([{"default": {}}]).tables == {}


def test_next_hop_groups_of_sonic() -> None:
    (flat,) = PRINTERS["sonic"](ROUTES)
    routes, groups = {}, {}
    for n, (key, entry) in enumerate(flat.items()):
        value = dict(entry["value"])
        if "nexthop" in value:
            hops = {word: value.pop(word) for word in ("nexthop", "ifname")}
            groups[f"NEXTHOP_GROUP_TABLE:ID{n}"] = {"type": "hash", "value": hops}
            value["nexthop_group"] = f"ID{n}"
        routes[key] = {"type": "hash", "value": value}
    assert held([routes, groups]) == held([groups | routes]) == held([flat])
    with pytest.raises(InputError, match=r"has group ID.*which is not in the dump"):
        held([routes])


def unwrapped(value: Any) -> Any:
    """JSON of Junos with `export-format state-data json compact`."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        return value[0]["data"] if "data" in value[0] else unwrapped(value[0])
    if isinstance(value, dict):
        return {key: unwrapped(inner) for key, inner in value.items()}
    return [unwrapped(inner) for inner in value] if isinstance(value, list) else value


def test_other_json_of_junos() -> None:
    (usual,) = PRINTERS["junos"](ROUTES)
    assert held([unwrapped(usual)]) == held([usual])
    item = {"re-name": [{"data": "member0"}], **usual}
    engines = {"multi-routing-engine-results": [{"multi-routing-engine-item": [item]}]}
    assert held([engines]) == held([usual])
    detail = json.loads(json.dumps(usual))
    for table in detail["route-information"][0]["route-table"]:
        for route in table["rt"]:
            prefix, length = route["rt-destination"][0]["data"].split("/")
            route["rt-destination"] = [{"data": prefix}]
            route["rt-prefix-length"] = [{"data": length}]
    assert held([detail]) == held([usual])


BGP = {"10.0.4.0/24": [{"valid": True, "nexthops": [{"ip": "10.1.0.1"}]}]}
NO_ROUTES = {
    "show bgp json": {"vrfId": 0, "tableVersion": 6, "routerId": "10.0.0.1", "routes": BGP},
    "show bgp vrf all json": {"default": {"vrfId": 0, "routerId": "10.0.0.1", "routes": BGP}},
    "routes of bgp alone": {"routes": BGP},
    "show ip bgp | json": {"vrfs": {"default": {"asn": "65001", "bgpRouteEntries": {}}}},
    "show bgp | json": {
        "TABLE_vrf": {"ROW_vrf": {"vrf-name-out": "default", "TABLE_afi": {"ROW_afi": {}}}}
    },
    "show route summary": {"route-summary-information": [{}]},
}


@pytest.mark.parametrize("name", NO_ROUTES)
def test_what_is_no_routing_table_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="show ip route"):
        held([NO_ROUTES[name]])


TEXTS = {
    "Codes: K - kernel route, C - connected, S - static": "of frr as text; collect vtysh",
    "VRF: default\nCodes: C - connected, S - static": "collect show ip route vrf all | json",
    'IP Route Table for VRF "default"': "of nxos as text",
    "inet.0: 6 destinations, 7 routes (6 active)": "collect show route | display json",
    "IPv4 unicast route table of network instance default": "collect info from state",
    "10.0.4.0/30 via 10.0.0.5 dev eth1 proto 80 metric 1": "collect ip -json route show table all",
    "unreachable 10.0.0.0/16 proto 80": "of linux as text",
    "hello": "given a text: hello",
    '[{"broadcast","dst":"127.0.0.0"}]': "iproute2 5.1 or later",
    "bash: line 1: vtysh: command not found": "what a device says",
    '{}\nerror: syntax error: route\n{"vrfs": {}}': "what a device says: 'error: syntax",
}


@pytest.mark.parametrize("said", TEXTS)
def test_text_is_refused_with_what_to_collect(said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_tables([(f"admin@n1:~$ show\n{said}\n", "n1.txt")])
    assert TEXTS[said] in str(caught.value)
    assert "\n" not in str(caught.value)


ALONE = {
    "policy rules alone": [{"priority": 32766, "src": "all", "table": "main"}],
    "next hops alone": [{"id": 1, "gateway": "10.0.0.1", "dev": "eth1"}],
    "next-hop groups alone": {"NEXTHOP_GROUP_TABLE:1": {"value": {"nexthop": "10.0.0.1"}}},
}


@pytest.mark.parametrize("what", ALONE)
def test_parts_of_tables_without_a_route_are_refused(what: str) -> None:
    """Not read as a device without any route."""
    with pytest.raises(InputError, match=what):
        held([ALONE[what]])


def test_json_that_is_deep_is_no_table() -> None:
    document: dict[str, Any] = {"10.0.0.0/24": [{"nexthops": []}]}
    for _ in range(500):
        document = {"default": document}
    with pytest.raises(InputError, match="JSON that begins with"):
        held([document])


def test_rules_beside_an_empty_table() -> None:
    assert held([{}, ALONE["policy rules alone"]]).tables == {"rules of IPv6": {}}


def test_an_odd_name_of_a_file_is_said_in_letters(tmp_path: Path) -> None:
    (tmp_path / "n\x1b1.json").write_text('{"a": 1}')
    with pytest.raises(InputError) as caught:
        read_tables(device_texts([tmp_path / "n\x1b1.json"]))
    assert str(caught.value).isprintable()


def test_the_envelope_of_eapi_is_opened() -> None:
    documents = PRINTERS["eos"](ROUTES)
    wrapped = [{"jsonrpc": "2.0", "id": 1, "result": [document]} for document in documents]
    assert held(wrapped) == held(documents)
