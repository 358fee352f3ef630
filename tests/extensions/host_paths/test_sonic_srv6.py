"""SRv6 on SONiC: the same SIDs, locators and next hops as in the files of target srv6."""

import json
import re

import pytest

from compilers.targets.sonic.port_names import SONIC
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.targets.makers import fabric

MODES = ("host", "switch")


def sonic(build, out, mode, **options):
    target("sonic").render(build, out, options={"srv6": mode, **options})
    return {
        node: json.loads((out / node / "config_db.json").read_text()) for node in build.wiring.names
    }


def frr(path):
    """{SID: words of its behaviour} and {prefix: interface} of an srv6.conf of FRR."""
    sids, routes = {}, {}
    for line in path.read_text().splitlines():
        match line.split():
            case ["sid", prefix, "locator", _, "behavior", *words]:
                sids[prefix] = words
            case ["ipv6", "route", prefix, _, interface]:
                routes[prefix] = interface
    return sids, routes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("hosts", [1, 2])
def test_the_same_as_target_srv6(mode, hosts, tmp_path):
    build = fabric(q=3, hosts=hosts, spread=True)
    trees = sonic(build, tmp_path / "sonic", mode)
    target("srv6").render(build, tmp_path / "srv6", options={"decap": mode})
    w, named = build.wiring, SONIC.named(build).wiring
    for vertex, node in enumerate(w.names):
        sids, routes = frr(tmp_path / "srv6" / node / "srv6.conf")
        tree = trees[node]
        names = dict(zip(*(x.port_names[0] for x in (w, named)), strict=True)) | {"hosts": "Vlan2"}
        (locator,) = tree["SRV6_MY_LOCATORS"].values()
        own, length = f"{locator['prefix']}/48", locator["block_len"] + locator["node_len"]
        assert (length, own in sids) == ("3216", True)
        found = {key.split("|")[1]: sid for key, sid in tree["SRV6_MY_SIDS"].items()}
        assert set(found) == set(sids)
        for prefix, (kind, *path) in sids.items():
            assert found[prefix]["action"] == kind.replace("uDT6", "uDT46")
            if kind == "uA":
                interface = names[path[1]]
                assert found[prefix]["interface"] == interface
                assert far_end(trees, found[prefix]["adj"]) == far_of(named, vertex, interface)
        ours = {
            key.split("|")[1]: entry["ifname"]
            for key, entry in tree["STATIC_ROUTE"].items()
            if key.startswith("default|fc00:")
        }
        assert ours == {prefix: names[interface] for prefix, interface in routes.items()}


@pytest.mark.parametrize("mode", MODES)
def test_files_are_read_back_beside_alternates_of_hosts(mode, tmp_path):
    """The alternates are in the files of hosts; switches were said to lack them."""
    build = fabric(q=3, spread=True)
    sonic(build, tmp_path, mode)
    assert build.tables.classes.alternate.shape[2]
    report = target("sonic").check_emitted(build, tmp_path, {"srv6": mode})
    assert report.passed, report.examples


def far_end(trees, address):
    """The node and the interface that have an address."""
    (found,) = [
        (node, key.split("|")[0])
        for node, tree in trees.items()
        for key in tree["INTERFACE"]
        if key.endswith(f"|{address}/127")
    ]
    return found


def far_of(wiring, vertex, interface):
    ports = wiring.port_names[0]
    k = wiring.port[vertex].tolist().index(ports.index(interface) + 1)
    far = int(wiring.far[vertex, k])
    return wiring.names[far], ports[wiring.far_port[vertex, k] - 1]


@pytest.mark.parametrize("mode", MODES)
def test_golden(mode, tmp_path, golden):
    sonic(fabric(q=2, spread=True), tmp_path, mode)
    for path in sorted((tmp_path / "3").iterdir()):
        golden(path.read_text(), f"sonic_srv6_{mode}_{path.name}")


def test_frr_has_the_same_routes(tmp_path):
    for node, tree in sonic(fabric(q=2), tmp_path, "host").items():
        text = (tmp_path / node / "frr.conf").read_text()
        for key, entry in tree["STATIC_ROUTE"].items():
            if "nexthop" in entry:
                path = f"{key.split('|')[1]} {entry['nexthop']} {entry['ifname']} tag 2"
                assert path in text


def test_what_is_missing_for_srv6(tmp_path):
    with pytest.raises(InputError) as error:
        sonic(fabric(q=2, ipv6=""), tmp_path / "out", "host", block="fd64::/32")
    told = str(error.value).splitlines()
    assert told[0].startswith("addressing.ipv6: required an IPv6 pool: SRv6 carries IPv6 packets,")
    assert told[1] == (
        "set block: required a block outside the pool of links6, fd64::/64, given fd64::/32"
    )
    with pytest.raises(InputError, match="outside the pool of hosts, fd00::/48, given fd00::/32"):
        sonic(fabric(q=2), tmp_path / "out", "host", block="fd00::/32")
    assert not (tmp_path / "out").exists()


BOOLEAN = "true|false"
ADDRESS = r"[0-9a-f:.]+"
PREFIX = rf"{ADDRESS}/\d{{1,3}}"
NAME = r"(Ethernet\d+|Vlan\d+)"
MODELS = {
    "DEVICE_METADATA": (
        "localhost",
        {
            "hostname": r"[A-Za-z0-9-]{1,63}",
            "type": "LeafRouter",
            "docker_routing_config_mode": "separated|unified|split|split-unified",
        },
    ),
    "PORT": (r"Ethernet\d+", {"admin_status": "up|down", "description": ".{0,255}"}),
    "INTERFACE": (rf"Ethernet\d+(\|{PREFIX})?", {}),
    "LOOPBACK_INTERFACE": (rf"Loopback0(\|{PREFIX})?", {}),
    "VLAN": (r"Vlan\d+", {"vlanid": r"\d+"}),
    "VLAN_MEMBER": (r"Vlan\d+\|Ethernet\d+", {"tagging_mode": "untagged|tagged"}),
    "VLAN_INTERFACE": (rf"Vlan\d+(\|{PREFIX})?", {}),
    "STATIC_ROUTE": (
        rf"default\|{PREFIX}",
        {
            "advertise": "false",
            "blackhole": BOOLEAN,
            "distance": r"\d{1,3}",
            "ifname": NAME,
            "nexthop": ADDRESS,
        },
    ),
    "SRV6_MY_LOCATORS": (
        "fabric",
        {"prefix": ADDRESS}
        | dict.fromkeys(("block_len", "node_len", "func_len", "arg_len"), r"\d+"),
    ),
    "SRV6_MY_SIDS": (
        rf"fabric\|{PREFIX}",
        {"action": "uN|uA|uDT46", "interface": NAME, "adj": ADDRESS, "decap_vrf": "default"},
    ),
}
"""Keys and values as in SONiC's YANG models (sonic-buildimage, src/sonic-yang-models)."""


@pytest.mark.parametrize("hosts", [0, 2])
def test_tables_have_the_structure_of_sonics_models(hosts, tmp_path):
    for tree in sonic(fabric(q=2, hosts=hosts), tmp_path, "switch").values():
        for table, entries in tree.items():
            key_pattern, fields = MODELS[table]
            for key, entry in entries.items():
                assert re.fullmatch(key_pattern, key), (table, key)
                for field, value in entry.items():
                    assert re.fullmatch(fields[field], value), (table, key, field)
        ports = set(tree["PORT"])
        named = {key.split("|")[0] for key in tree["INTERFACE"]}
        members = {key.split("|")[1] for key in tree.get("VLAN_MEMBER", {})}
        assert named | members == ports
        assert not named & members
