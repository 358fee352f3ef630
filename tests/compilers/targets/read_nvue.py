"""A reader of NVUE's startup.yaml."""

from __future__ import annotations

import yaml

from tests.compilers.targets.network_configs import Config


def read_nvue(folder):
    (top,) = yaml.safe_load((folder / "startup.yaml").read_text())
    tree = top["set"]
    config = Config(hostname=tree["system"]["hostname"])
    for name, port in tree["interface"].items():
        config.descriptions[name] = port.get("description")
        for address in port.get("ip", {}).get("address", {}):
            config.add_address(name, address)
        if "bridge" in port:
            config.members[f"vlan{port['bridge']['domain']['br_default']['access']}"].append(name)
    assert list(tree["vrf"]) == ["default"]
    for prefix, route in tree["vrf"]["default"]["router"]["static"].items():
        six = "ipv6" if ":" in prefix else "ipv4"
        assert route.pop("address-family") == f"{six}-unicast"
        for distance, ways in route.pop("distance", {}).items():
            assert ways == {"via": {"blackhole": {"type": "blackhole"}}}
            config.discard(prefix, distance)
        for gateway, way in route.pop("via", {}).items():
            assert way == {"type": f"{six}-address"}
            config.add_route(prefix, gateway)
        assert not route
    return config
