"""Readers of configs in sections, by hier_config: eos and nxos."""

from __future__ import annotations

from hier_config import Platform, get_hconfig

from tests.compilers.targets.network_configs import Config


def read_eos(folder):
    return _read((folder / "eos.cfg").read_text(), Platform.ARISTA_EOS)


def read_nxos(folder):
    return _read((folder / "nxos.cfg").read_text(), Platform.CISCO_NXOS)


def _read(text, platform):
    config, vlans = Config(), {}
    for section in get_hconfig(platform, text).children:
        match section.text.split():
            case ["hostname", name]:
                config.hostname = name
            case ["interface", name]:
                _interface(config, vlans, name, section)
            case ["ip" | "ipv6", "route", "vrf", "hosts", *rest]:
                _entering(config, rest)
            case ["ip" | "ipv6", "route", prefix, "egress-vrf", "hosts", interface, gateway]:
                config.add_back(prefix, gateway, interface)
            case ["ip" | "ipv6", "route", prefix, interface, gateway, "vrf", "hosts"]:
                config.add_back(prefix, gateway, interface)
            case ["vrf", "context", "hosts"]:
                for line in section.children:
                    _entering(config, line.text.split()[2:])
            case ["ip" | "ipv6", "route", prefix, "Null0", preference]:
                config.discard(prefix, preference)
            case ["ip" | "ipv6", "route", prefix, interface, gateway]:
                config.add_route(prefix, gateway, interface)
            case ["vlan", _] | ["feature", "interface-vlan"]:
                pass
            case ["ip", "routing", *_] | ["ipv6", "unicast-routing", *_]:
                pass
            case ["vrf", "instance", "hosts"] | ["service", "routing", "protocols", *_]:
                pass
            case words:
                raise AssertionError(words)
    for name, vlan in vlans.items():
        config.members[f"Vlan{vlan}"].append(name)
    return config


def _entering(config, words):
    match words:
        case [prefix, "Null0", preference]:
            config.discard(prefix, preference, entering=True)
        case [prefix, "egress-vrf", "default", interface, gateway]:
            config.add_entering(prefix, gateway, interface)
        case [prefix, interface, gateway, "vrf", "default"]:
            config.add_entering(prefix, gateway, interface)
        case _:
            raise AssertionError(words)


def _interface(config, vlans, name, section):
    lines = [line.text.split(maxsplit=2) for line in section.children]
    inside = False
    routed = not name.startswith("Ethernet") or ["no", "switchport"] in lines
    for words in lines:
        match words:
            case ["description", *rest]:
                config.descriptions[name] = " ".join(rest)
            case ["ip" | "ipv6", "address", address]:
                assert routed
                config.add_address(name, address)
            case ["switchport", "access", vlan]:
                assert not routed
                vlans[name] = vlan.removeprefix("vlan ")
            case ["vrf", "hosts"] | ["vrf", "member", "hosts"]:
                assert not config.addresses[name]  # they would go
                inside = True
            case ["no", "shutdown" | "switchport"] | ["switchport"] | ["switchport", "mode", _]:
                pass
            case _:
                raise AssertionError(words)
    if inside:
        config.enters(name)
