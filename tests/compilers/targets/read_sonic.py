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
}


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
    for key in tree.get("VLAN_MEMBER", {}):
        vlan, port = key.split("|")
        assert vlan in tree["VLAN"]
        config.members[vlan].append(port)
    for key, entry in tree["STATIC_ROUTE"].items():
        vrf, prefix = key.split("|")
        assert vrf == "default"
        assert entry["advertise"] == "false"
        if entry.get("blackhole") == "true":
            config.discard(prefix, entry["distance"])
        else:
            config.add_route(prefix, entry["nexthop"], entry["ifname"])
    frr = _frr(folder)
    assert (frr.hostname, frr.routes, frr.discards) == (
        config.hostname,
        config.routes,
        config.discards,
    )
    return config


def _frr(folder):
    config = Config()
    for line in (folder / "frr.conf").read_text().splitlines():
        match line.split():
            case ["hostname", name]:
                config.hostname = name
            case ["ip" | "ipv6", "route", prefix, "blackhole", distance, "tag", "2"]:
                config.discard(prefix, distance)
            case ["ip" | "ipv6", "route", prefix, gateway, interface, "tag", "2"]:
                config.add_route(prefix, gateway, interface)
            case ["service", "integrated-vtysh-config"] | ["end"] | ["!", *_]:
                pass
            case words:
                raise AssertionError(words)
    return config
