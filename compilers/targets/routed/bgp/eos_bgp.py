"""eBGP of the eos target as AVD's structured config (eos_cli_config_gen)."""

from __future__ import annotations

from typing import Any

from compilers.targets.routed.bgp.control_plane import BgpFamily, BgpSpeaker

Tree = dict[str, Any]


def bgp_structured(bgp: BgpSpeaker) -> Tree:
    """The keys that a switch has with eBGP, in AVD's words."""
    families = bgp.families
    lists = {f.word: [_prefix_list(name, ends) for name, ends in _lists(f)] for f in families}
    groups: list[Tree] = [
        {"name": f"fabric-{f.name}", "maximum_routes": 0} | ({"bfd": True} if bgp.bfd else {})
        for f in families
    ]
    watched = dict.fromkeys(("interval", "min_rx"), bgp.interval) | {"multiplier": bgp.multiplier}
    return {
        **({"router_bfd": watched} if bgp.bfd else {}),
        "prefix_lists": lists["ip"],
        **({"ipv6_prefix_lists": lists["ipv6"]} if families[1:] else {}),
        "route_maps": [each for f in families for each in _route_maps(bgp, f)],
        "router_bgp": {
            "as": str(bgp.number),
            "router_id": bgp.router_id,
            "bgp": {"default": {"ipv4_unicast": False}},
            "bgp_defaults": [
                f"timers bgp {bgp.keepalive} {bgp.hold}",
                "bgp always-compare-med",
                "bgp bestpath tie-break router-id",
            ],
            "maximum_paths": {"paths": 1, "ecmp": 1},
            "peer_groups": groups,
            "neighbors": [
                {
                    "ip_address": peer.address,
                    "peer_group": f"fabric-{f.name}",
                    "remote_as": str(peer.number),
                }
                for f in families
                for peer in f.peers
            ],
            **{f"address_family_{f.name}": _activated(f) for f in families},
        },
    }


def _lists(f: BgpFamily) -> list[tuple[str, list[str]]]:
    """The prefix lists of a family: their names, and what they permit."""
    preferred = [(policy, list(own)) for policy, own in f.policies() if own]
    everyone = [f"{f.pool} ge {f.length} le {f.length}"]
    everyone += [f"{f.via_pool} ge {f.full} le {f.full}"] if f.via else []
    return [(f"fabric-{f.name}", everyone), *preferred]


def _prefix_list(name: str, permitted: list[str]) -> Tree:
    numbered = [
        {"sequence": 5 * n, "action": f"permit {text}"} for n, text in enumerate(permitted, 1)
    ]
    return {"name": name, "sequence_numbers": numbered}


def _route_maps(bgp: BgpSpeaker, f: BgpFamily) -> list[Tree]:
    everyone = f"fabric-{f.name}"

    def entry(sequence: int, prefixes: str, metric: int) -> Tree:
        near = f"as-path length <= {bgp.longest}"
        return {
            "sequence": sequence,
            "type": "permit",
            "match": [near, f"{f.word} address prefix-list {prefixes}"],
            "set": [f"metric {metric}"],
        }

    announced = {
        "sequence": 10,
        "type": "permit",
        "match": [f"{f.word} address prefix-list {everyone}"],
    }
    policies = [
        (policy, [*([entry(10, policy, 0)] if own else []), entry(20, everyone, 1)])
        for policy, own in f.policies()
    ]
    policies.append((f"announced-{f.name}", [announced]))
    return [{"name": name, "sequence_numbers": entries} for name, entries in policies]


def _activated(f: BgpFamily) -> Tree:
    """What an address family says of its neighbours, and the prefix of the switch."""
    group = {
        "name": f"fabric-{f.name}",
        "activate": True,
        "route_map_in": f"fabric-{f.name}",
        "route_map_out": f"announced-{f.name}",
    }
    preferring = [
        {"ip_address": peer.address, "route_map_in": peer.policy}
        for peer in f.peers
        if peer.preferred
    ]
    found: Tree = {"peer_groups": [group]}
    found |= {"neighbors": preferring} if preferring else {}
    networks = [{"prefix": prefix} for prefix in f.announced]
    return found | ({"networks": networks} if networks else {})
