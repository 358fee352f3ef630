"""Readers of SONiC's config_db.json and of the frr.conf beside it."""

from __future__ import annotations

import json

from tests.compilers.targets.network_configs import Config

TABLES = {
    "DEVICE_METADATA",
    "INTERFACE",
    "LOOPBACK_INTERFACE",
    "PORT",
    "STATIC_ROUTE",
    "VLAN",
    "VLAN_INTERFACE",
    "VLAN_MEMBER",
    "VRF",
}
VRF = "Vrf-hosts"


def read_sonic(folder):
    """CONFIG_DB, once its routes are those that frr.conf has with bgpcfgd's tag."""
    tree = json.loads((folder / "config_db.json").read_text())
    assert set(tree) <= TABLES
    config = Config(hostname=tree["DEVICE_METADATA"]["localhost"]["hostname"])
    for name, port in tree["PORT"].items():
        assert port["admin_status"] == "up"
        config.descriptions[name] = port["description"]
    for table in ("INTERFACE", "LOOPBACK_INTERFACE", "VLAN_INTERFACE"):
        for key in tree.get(table, {}):
            name, *address = key.split("|")
            assert name in tree[table]
            if address:
                config.add_address(name, *address)
        for name, entry in tree.get(table, {}).items():
            if "vrf_name" in entry:
                assert entry == {"vrf_name": VRF}
                config.enters(name)
    assert tree.get("VRF", {}) == ({VRF: {}} if config.ingress else {})
    for key in tree.get("VLAN_MEMBER", {}):
        vlan, port = key.split("|")
        assert vlan in tree["VLAN"]
        config.members[vlan].append(port)
    for key, entry in tree["STATIC_ROUTE"].items():
        vrf, prefix = key.split("|")
        assert vrf in ("default", VRF)
        assert entry["advertise"] == "false"
        if entry.get("blackhole") == "true":
            config.discard(prefix, entry["distance"], entering=vrf == VRF)
        elif vrf == VRF:
            lists = [entry[key].split(",") for key in ("nexthop", "ifname", "nexthop-vrf")]
            for gateway, interface, of_hop in zip(*lists, strict=True):
                assert of_hop == "default"
                config.add_entering(prefix, gateway, interface)
        elif entry.get("nexthop-vrf"):
            assert entry["nexthop-vrf"] == VRF
            config.add_back(prefix, entry["nexthop"], entry["ifname"])
        else:
            config.add_route(prefix, entry["nexthop"], entry["ifname"])
    frr = _frr(folder)
    for part in ("hostname", "routes", "discards", "entering", "entering_discards", "back"):
        assert getattr(frr, part) == getattr(config, part)
    return config


def _frr(folder):
    config, inside = Config(), False
    for line in (folder / "frr.conf").read_text().splitlines():
        match line.split():
            case ["hostname", name]:
                config.hostname = name
            case ["ip" | "ipv6", "route", prefix, "blackhole", distance, "tag", "2"]:
                config.discard(prefix, distance, entering=inside)
            case [
                "ip" | "ipv6",
                "route",
                prefix,
                gateway,
                interface,
                "nexthop-vrf",
                vrf,
                "tag",
                "2",
            ]:
                assert vrf == ("default" if inside else VRF)
                (config.add_entering if inside else config.add_back)(prefix, gateway, interface)
            case ["ip" | "ipv6", "route", prefix, gateway, interface, "tag", "2"]:
                assert not inside
                config.add_route(prefix, gateway, interface)
            case ["vrf", name]:
                assert name == VRF
                inside = True
            case ["exit-vrf"]:
                inside = False
            case ["service", "integrated-vtysh-config"] | ["no", "fpm", _] | ["fpm", *_]:
                pass
            case ["end"] | ["!", *_]:
                pass
            case words:
                raise AssertionError(words)
    return config
