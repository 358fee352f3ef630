"""Reader of SONiC's CONFIG_DB."""

from __future__ import annotations

from collections.abc import Collection
from socket import AF_INET6, inet_pton
from typing import Any

from compilers.readers.emitted_forwarding import Interface
from compilers.readers.expected_facts import port_text
from compilers.readers.routers.known_keys import ANY, READ, line_of
from compilers.readers.routers.management import read_servers
from compilers.readers.routers.router_text import (
    DEFAULT,
    DISCARD,
    LAST_RESORT,
    RouterText,
    from_inside,
    lines_of,
)
from compilers.readers.strict_json import parse

Tree = dict[str, Any]
ADDRESSED = {ANY: {"vrf_name": READ}}
SHAPE: Tree = {
    "DEVICE_METADATA": {
        "localhost": {
            "hostname": READ,
            "type": "LeafRouter",
            "docker_routing_config_mode": "split-unified",
        }
    },
    "MGMT_INTERFACE": {ANY: {"gwaddr": READ}},
    **{table: {ANY: {}} for table in ("NTP_SERVER", "SYSLOG_SERVER", "VRF")},
    "PORT": {
        ANY: dict.fromkeys(("admin_status", "description", "lanes", "speed", "fec", "mtu"), READ)
    },
    "BREAKOUT_CFG": {ANY: {"brkout_mode": READ}},
    **dict.fromkeys(("INTERFACE", "LOOPBACK_INTERFACE", "VLAN_INTERFACE"), ADDRESSED),
    **dict.fromkeys(("STATIC_ROUTE", "VLAN_MEMBER"), READ),
    "VLAN": {ANY: {"vlanid": READ}},
}
SONIC_PARTS: dict[str, Tree] = {
    "segments": {
        "SRV6_MY_LOCATORS": {
            ANY: dict.fromkeys(("prefix", "block_len", "node_len", "func_len", "arg_len"), READ)
        },
        "SRV6_MY_SIDS": {
            ANY: {"action": READ, "interface": READ, "adj": READ, "decap_vrf": "default"}
        },
    },
    "lossless": {
        **dict.fromkeys(("BUFFER_PG", "BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_QUEUE"), READ),
        **dict.fromkeys(("CABLE_LENGTH", "PFC_WD", "PORT_QOS_MAP", "QUEUE", "SCHEDULER"), READ),
        **dict.fromkeys(("DSCP_TO_TC_MAP", "MAP_PFC_PRIORITY_TO_QUEUE", "TC_TO_DSCP_MAP"), READ),
        **dict.fromkeys(("TC_TO_PRIORITY_GROUP_MAP", "TC_TO_QUEUE_MAP", "WRED_PROFILE"), READ),
    },
}
TOLD = {"fec", "speed", "lanes", "mode"}
SEGMENT_BLOCK = 4


def read_sonic(text: str, file: str, hwsku: str = "", parts: Collection[str] = ()) -> RouterText:
    """SONiC's CONFIG_DB.

    Args:
        text: of the file.
        file: its name.
        hwsku: the hardware's name that it is to have.
        parts: of `SONIC_PARTS`, what may stand there beside the usual.
    """
    router, tree = RouterText(file), parse(text)
    router.told = (router.told | TOLD) - {"mtu of the hosts"}  # which VLANs do not have
    more = {table: shape for part in parts for table, shape in SONIC_PARTS[part].items()}
    router.known(tree, SHAPE | more, text)
    device = tree["DEVICE_METADATA"]["localhost"]
    router.fact(line_of(text, ("hostname",)), "hostname", device["hostname"])
    for key in SHAPE["DEVICE_METADATA"]["localhost"].keys() - device.keys():
        router.fault(line_of(text, ("DEVICE_METADATA",)), f"no {key} in DEVICE_METADATA")
    if device.get("hwsku", "") != hwsku:
        router.fault(line_of(text, ("DEVICE_METADATA", "hwsku")), f"hwsku is not {hwsku!r}")
    ports = tree.get("PORT", {})
    _, *lines = lines_of(text, ('"PORT": {', *(f'"{name}": {{' for name in ports)))
    for name, line in zip(ports, lines, strict=True):
        router.interface(name, line)
        _port(router, name, ports[name], line)
    for table in ("INTERFACE", "LOOPBACK_INTERFACE", "VLAN_INTERFACE"):
        _addresses(router, tree.get(table, {}), text)
    for key, member in tree.get("VLAN_MEMBER", {}).items():
        vlan, _, port = key.partition("|")
        if vlan not in tree.get("VLAN", {}) or member != {"tagging_mode": "untagged"}:
            router.fault(next(lines_of(text, [f'"{key}"'])), f"VLAN_MEMBER {key}")
        router.interface(port, 0).vlan = vlan
        router.shared[vlan] = vlan
    for name, vlan in tree.get("VLAN", {}).items():
        if name != f"Vlan{vlan.get('vlanid')}":
            router.fault(line_of(text, ("VLAN", name, "vlanid")), f"VLAN {name}")
    for cage, mode in tree.get("BREAKOUT_CFG", {}).items():
        where = line_of(text, ("BREAKOUT_CFG", cage))
        router.fact(where, "mode", cage, mode["brkout_mode"])
    _management(router, tree, text)
    router.vrf = next(iter(tree.get("VRF", {})), "")
    _routes(router, tree.get("STATIC_ROUTE", {}), text)
    for locator in tree.get("SRV6_MY_LOCATORS", {}).values():
        router.segments = inet_pton(AF_INET6, locator["prefix"])[:SEGMENT_BLOCK]
    return router


def _port(router: RouterText, name: str, entry: Tree, line: int) -> None:
    port = Interface(name)
    if entry.get("admin_status") != "up":
        router.fault(line, f"port {name} is not up")
    for kind in ("description", "lanes"):
        if kind in entry:
            router.fact(line, kind, port, entry[kind])
    if "mtu" in entry:
        router.fact(line, "mtu", port, int(entry["mtu"]))
    if "speed" in entry:
        router.fact(line, "speed", port, int(entry["speed"]))
    if "fec" in entry:
        router.fact(line, "fec", port, "off" if entry["fec"] == "none" else entry["fec"])


def _addresses(router: RouterText, table: Tree, text: str) -> None:
    """Addresses have a key each, and their interface one of its own."""
    keys = sorted(table, key=lambda key: text.find(f'"{key}"'))
    for key, line in zip(keys, lines_of(text, (f'"{key}"' for key in keys)), strict=True):
        name, _, address = key.partition("|")
        if name not in table:
            router.fault(line, f"{key} without {name}")
        elif name == key:
            router.interface(name, line).vrf = table[key].get("vrf_name", "")
        if address:
            router.interface(name, line).addresses.append((address, line))


def _routes(router: RouterText, table: Tree, text: str) -> None:
    known = {DEFAULT: (router.transit, _hops), router.vrf: (router.entering, _inside)}
    by_vrf: dict[str, list[tuple[str, str]]] = {}
    for key in table:
        vrf, _, prefix = key.rpartition("|")
        by_vrf.setdefault(vrf, []).append((key, prefix))
    for vrf, keys in by_vrf.items():
        lines = lines_of(text, (f'"{key}": {{' for key, _ in keys))
        if vrf in known and vrf:
            rows, hops_of = known[vrf]
            router.static(rows, [(prefix, table[key]) for key, prefix in keys], lines, hops_of)
        else:
            router.fault(next(iter(lines)), f"routes of VRF {vrf!r}")
    router.part_back()


def _inside(way: Tree) -> list[str]:
    hops = [from_inside(hop) for hop in _hops(way)]
    known = [hop for hop in hops if hop is not None]
    return known if len(known) == len(hops) else []


def _hops(way: Tree) -> list[str]:
    match way:
        case {"advertise": "false", "nexthop": gateways, "ifname": interfaces, **more}:
            columns = [gateways, interfaces, *(more[k] for k in ("nexthop-vrf",) if k in more)]
            lists = [column.split(",") for column in columns]
            if more.keys() - {"nexthop-vrf"} or len(set(map(len, lists))) > 1:
                return []
            return list(map(" ".join, zip(*lists, strict=True)))
        case {"advertise": "false", "blackhole": "true", "distance": distance, **more} if not more:
            return [DISCARD] if distance == LAST_RESORT else []
    return []


def _management(router: RouterText, tree: Tree, text: str) -> None:
    """Note management, time and logs of CONFIG_DB."""
    for key, entry in tree.get("MGMT_INTERFACE", {}).items():
        line = line_of(text, ("MGMT_INTERFACE", key))
        port, _, address = key.partition("|")
        router.fact(line, "management", port_text(port), address)
        if "gwaddr" in entry:
            router.fact(line, "gateway of management", entry["gwaddr"])
    for table in ("NTP_SERVER", "SYSLOG_SERVER"):
        read_servers(router, table, list(tree.get(table, {})), True, text)
