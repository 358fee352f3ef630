"""eBGP of the srlinux target, in the system's models (srl_nokia-bgp, -routing-policy, -bfd).

A statement of an export policy takes every active route that it matches, so the switch's own
prefix, connected or discarded, is announced without another word.
"""

from __future__ import annotations

from typing import Any

from compilers.targets.routed.bgp.control_plane import BgpFamily, BgpSpeaker
from compilers.targets.routed.p2p_links import P2pRouter

Tree = dict[str, Any]
COMMON = "srl_nokia-common"
"""The module of the names of address families."""
MICROSECONDS = 1000
"""Of a millisecond."""
ACCEPT, REJECT = ({"policy-result": word} for word in ("accept", "reject"))


def bgp_roots(bgp: BgpSpeaker, router: P2pRouter) -> Tree:
    """Policies, and BFD on every link."""
    interval = bgp.interval * MICROSECONDS
    watched = {
        "admin-state": "enable",
        "desired-minimum-transmit-interval": interval,
        "required-minimum-receive": interval,
        "detection-multiplier": bgp.multiplier,
    }
    links = [{"id": f"{link.interface}.0", **watched} for link in router.links]
    policies = {
        "prefix-set": [each for f in bgp.families for each in _prefix_sets(f)],
        "policy": [each for f in bgp.families for each in _policies(bgp, f)],
    }
    return {
        "srl_nokia-routing-policy:routing-policy": policies,
        **({"srl_nokia-bfd:bfd": {"subinterface": links}} if bgp.bfd else {}),
    }


def bgp_protocol(bgp: BgpSpeaker) -> Tree:
    """`protocols` of the network instance; the backup path is ready before the best one fails."""
    families = [
        {
            "afi-safi-name": f"{COMMON}:{f.name}-unicast",
            "admin-state": "enable",
            f"{f.name}-unicast": {"backup-paths": {"install": True}},
        }
        for f in bgp.families
    ]
    neighbors = [
        {
            "peer-address": peer.address,
            "peer-as": peer.number,
            "peer-group": f"fabric-{f.name}",
            **({"import-policy": [peer.policy]} if peer.preferred else {}),
        }
        for f in bgp.families
        for peer in f.peers
    ]
    tree = {
        "admin-state": "enable",
        "autonomous-system": bgp.number,
        "router-id": bgp.router_id,
        "best-path-selection": {"always-compare-med": True},
        "afi-safi": families,
        "group": [_group(bgp, f) for f in bgp.families],
        "neighbor": neighbors,
    }
    return {"srl_nokia-bgp:bgp": tree}


def _group(bgp: BgpSpeaker, f: BgpFamily) -> Tree:
    """A group whose sessions are in one family."""
    return {
        "group-name": f"fabric-{f.name}",
        "export-policy": [f"announced-{f.name}"],
        "import-policy": [f"fabric-{f.name}"],
        "failure-detection": {"fast-failover": True} | ({"enable-bfd": True} if bgp.bfd else {}),
        "afi-safi": [
            {
                "afi-safi-name": f"{COMMON}:{each.name}-unicast",
                "admin-state": "enable" if each is f else "disable",
            }
            for each in bgp.families
        ],
        "timers": {
            "connect-retry": bgp.connect,
            "hold-time": bgp.hold,
            "keepalive-interval": bgp.keepalive,
            "minimum-advertisement-interval": 1,
        },
    }


def _prefix_sets(f: BgpFamily) -> list[Tree]:
    everyone = {"ip-prefix": f.pool, "mask-length-range": f"{f.length}..{f.length}"}
    return [{"name": f"fabric-{f.name}", "prefix": [everyone]}] + [
        {
            "name": policy,
            "prefix": [{"ip-prefix": each, "mask-length-range": "exact"} for each in preferred],
        }
        for policy, preferred in f.policies()
        if preferred
    ]


def _policies(bgp: BgpSpeaker, f: BgpFamily) -> list[Tree]:
    everyone = f"fabric-{f.name}"

    def statement(name: str, prefixes: str, metric: int) -> Tree:
        near = {"as-path-length": {"value": bgp.longest, "operator": "le"}}
        return {
            "name": name,
            "match": {"prefix": {"prefix-set": prefixes}, "bgp": near},
            "action": ACCEPT | {"bgp": {"med": {"operation": "set", "value": metric}}},
        }

    def policy(name: str, *statements: Tree) -> Tree:
        return {"name": name, "default-action": REJECT, "statement": list(statements)}

    announced = {"name": "10", "match": {"prefix": {"prefix-set": everyone}}, "action": ACCEPT}
    policies = [
        policy(name, *([statement("10", name, 0)] if own else []), statement("20", everyone, 1))
        for name, own in f.policies()
    ]
    return [*policies, policy(f"announced-{f.name}", announced)]
