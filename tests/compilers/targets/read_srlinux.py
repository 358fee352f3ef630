"""A reader of SR Linux's JSON."""

from __future__ import annotations

import json

from tests.compilers.targets.network_configs import Config


def read_srlinux(folder):
    tree = json.loads((folder / "srlinux.json").read_text())
    config, bridged = Config(), set()
    config.hostname = tree["srl_nokia-system:system"]["srl_nokia-system-name:name"]["host-name"]
    for interface in tree["srl_nokia-interfaces:interface"]:
        name = interface["name"]
        config.descriptions[name] = interface["description"]
        (inner,) = interface["subinterface"]
        assert interface["admin-state"] == inner["admin-state"] == "enable"
        if inner.get("type") == "srl_nokia-interfaces:bridged":
            bridged.add(f"{name}.{inner['index']}")
        for family in ("ipv4", "ipv6"):
            for address in inner.get(family, {}).get("address", []):
                assert inner[family]["admin-state"] == "enable"
                config.add_address(name, address["ip-prefix"])
    default, *others = tree["srl_nokia-network-instance:network-instance"]
    assert default["name"] == "default"
    routed = [entry["name"].split(".")[0] for entry in default["interface"]]
    assert set(routed) == set(config.addresses)
    for other in others:
        *ports, shared = [entry["name"] for entry in other["interface"]]
        assert set(ports) == bridged
        config.members[shared.split(".")[0]] = [port.split(".")[0] for port in ports]
    _routes(config, default)
    return config


def _routes(config, default):
    groups = default["srl_nokia-next-hop-groups:next-hop-groups"]["group"]
    by_name = {group["name"]: group for group in groups}
    assert len(by_name) == len(groups)
    for route in default["srl_nokia-static-routes:static-routes"]["route"]:
        group = by_name[route["next-hop-group"]]
        if "blackhole" in group:
            config.discard(route["prefix"], route["preference"])
        for hop in group.get("nexthop", []):
            config.add_route(route["prefix"], hop["ip-address"])
