"""A reader of Junos's set commands."""

from __future__ import annotations

import shlex

from tests.compilers.network_configs import Config


def read_junos(folder):
    config, members, shared, discarded = Config(), [], "", set()
    for line in (folder / "junos.set").read_text().splitlines():
        match shlex.split(line):
            case ["set", "apply-macro", "polarfab", "build", _]:
                pass
            case ["set", "system", "host-name", name]:
                config.hostname = name
            case ["set", "interfaces", name, "description", text]:
                config.descriptions[name] = text
            case ["set", "interfaces", "irb", "unit", _, "description", "hosts"]:
                pass
            case ["set", "interfaces", name, "unit", unit, "family", "inet" | "inet6", *rest]:
                key, address = rest
                assert key == "address"
                config.add_address(name if unit == "0" else f"{name}.{unit}", address)
            case ["set", "interfaces", name, "unit", "0", "family", "ethernet-switching", *rest]:
                if rest == ["vlan", "members", "hosts"]:
                    members.append(name)
                else:
                    assert rest == ["interface-mode", "access"]
            case ["set", "vlans", "hosts", "vlan-id", _]:
                pass
            case ["set", "vlans", "hosts", "l3-interface", name]:
                shared = name
            case ["set", "routing-options", "static", "route", *rest]:
                _route(config, discarded, *rest)
            case ["set", "routing-options", "rib", "inet6.0", "static", "route", *rest]:
                assert ":" in rest[0]
                _route(config, discarded, *rest)
            case words:
                raise AssertionError(words)
    assert set(map(str, config.discards)) == discarded
    if members:
        config.members[shared] = members
    return config


def _route(config, discarded, prefix, *rest):
    match rest:
        case ["discard"]:
            discarded.add(prefix)
        case ["preference", value]:
            config.discard(prefix, value)
        case ["next-hop", gateway]:
            config.add_route(prefix, gateway)
        case _:
            raise AssertionError(rest)
