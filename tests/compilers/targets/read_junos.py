"""A reader of Junos's set commands."""

from __future__ import annotations

import shlex

from tests.compilers.targets.network_configs import Config

RIBS = {"inet": "inet.0", "inet6": "inet6.0"}


def read_junos(folder):
    config, members, shared, discarded = Config(), [], "", set()
    by_filter = Entering()
    for line in (folder / "junos.set").read_text().splitlines():
        words = shlex.split(line)
        if by_filter.takes(*words[1:]):
            continue
        match words:
            case ["set", "apply-macro", "polarfab", "build", _]:
                pass
            case ["set", "system", "host-name", name]:
                config.hostname = name
            case ["set", "interfaces", name, "description", text]:
                config.descriptions[name] = text
            case ["set", "interfaces", "irb", "unit", _, "description", "hosts"]:
                pass
            case ["set", "interfaces", name, "unit", unit, "family", _, "address", address]:
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
    by_filter.put(config)
    return config


class Entering:
    """Filter-based forwarding: a filter at ports, and the instance that it names."""

    def __init__(self):
        self.config, self.discarded, self.seen = Config(), set(), set()
        self.filters, self.reached = {}, {}

    def takes(self, *words):
        match words:
            case ["interfaces", name, "unit", unit, "family", family, "filter", "input", used]:
                self.filters[family] = (name if unit == "0" else f"{name}.{unit}", used)
            case ["routing-instances", "polarfab", "routing-options", "static", "route", *rest]:
                assert ":" not in rest[0]
                _route(self.config, self.discarded, *rest)
            case ["routing-instances", "polarfab", "routing-options", "rib", rib, *rest]:
                assert (rib, rest[:2]) == ("polarfab.inet6.0", ["static", "route"])
                _route(self.config, self.discarded, *rest[2:])
            case ["firewall", "family", family, "filter", name, "term", "fabric", *rest]:
                self.reached.setdefault((family, name), []).append(rest)
            case ["routing-instances" | "firewall" | "policy-options", *_]:
                self.seen.add(words)
            case ["routing-options", "rib-groups" | "forwarding-table" | "interface-routes", *_]:
                self.seen.add(words)
            case _:
                return False
        return True

    def put(self, config):
        """Everything that forwarding by filter needs is there, or nothing of it."""
        wanted = set()
        if self.filters:
            policy = ("policy-options", "policy-statement", "polarfab", "then")
            wanted |= {
                (*policy, "load-balance", "per-packet"),
                ("routing-options", "forwarding-table", "export", "polarfab"),
                ("routing-instances", "polarfab", "instance-type", "forwarding"),
            }
        for family, (interface, used) in self.filters.items():
            group, rib = f"polarfab-{family}", RIBS[family]
            wanted |= {
                ("routing-options", "rib-groups", group, "import-rib", rib),
                ("routing-options", "rib-groups", group, "import-rib", f"polarfab.{rib}"),
                ("routing-options", "interface-routes", "rib-group", family, group),
                ("firewall", "family", family, "filter", used, "term", "others", "then", "accept"),
            }
            (pool,) = [p for p in self.config.discards if (p.version == 6) == (family == "inet6")]
            assert self.reached.pop((family, used)) == [
                ["from", "destination-address", str(pool)],
                ["then", "routing-instance", "polarfab"],
            ]
            config.ingress[family] = interface
        assert (self.seen, self.reached) == (wanted, {})
        assert set(map(str, self.config.discards)) == self.discarded
        config.entering = self.config.routes
        config.entering_discards = self.config.discards


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
