"""BGP in the YANG models of SR Linux: sessions, policies, and BFD on every link.

What comes in is the `BgpSpeaker` of a router. `device_config` puts the parts that are made here
into the configuration of the router.
"""

from __future__ import annotations

from typing import Any

from compilers.targets.routed.bgp.speaker_variables import BgpFamily, BgpSpeaker
from compilers.targets.routed.p2p_variables import P2pRouter

Tree = dict[str, Any]
"""A part of a configuration, as a mapping in the form of the models."""
COMMON = "srl_nokia-common"
"""The YANG module that defines the names of address families."""
MICROSECONDS_PER_MS = 1000
"""How many microseconds, the unit of BFD's intervals in the model, are a millisecond."""
ACCEPT = {"policy-result": "accept"}
"""The action of a statement that takes a route."""
REJECT = {"policy-result": "reject"}
"""The action of a policy for all other routes."""


def bgp_roots(bgp: BgpSpeaker, router: P2pRouter) -> Tree:
    """The parts of BGP at the top of a configuration: policies, and BFD on every link."""
    interval = bgp.interval * MICROSECONDS_PER_MS
    bfd = {
        "admin-state": "enable",
        "desired-minimum-transmit-interval": interval,
        "required-minimum-receive": interval,
        "detection-multiplier": bgp.multiplier,
    }
    links = [{"id": f"{link.interface}.0", **bfd} for link in router.links]
    policies = {
        "prefix-set": [prefixes for family in bgp.families for prefixes in _prefix_sets(family)],
        "policy": [policy for family in bgp.families for policy in _policies(bgp, family)],
    }
    return {
        "srl_nokia-routing-policy:routing-policy": policies,
        **({"srl_nokia-bfd:bfd": {"subinterface": links}} if bgp.bfd else {}),
    }


def bgp_protocol(bgp: BgpSpeaker) -> Tree:
    """`protocols` of the network instance; backup paths are installed before a best path fails."""
    multipath = {"allow-multiple-as": True, "ebgp": {"maximum-paths": bgp.paths}}
    families = [
        {
            "afi-safi-name": f"{COMMON}:{family.name}-unicast",
            "admin-state": "enable",
            f"{family.name}-unicast": {"backup-paths": {"install": True}},
            **({"multipath": multipath} if bgp.paths > 1 else {}),
        }
        for family in bgp.families
    ]
    neighbors = [
        {
            "peer-address": peer.address,
            "peer-as": peer.number,
            "peer-group": f"fabric-{family.name}",
            "description": peer.description,
            **({"import-policy": [peer.policy]} if peer.preferred else {}),
        }
        for family in bgp.families
        for peer in family.peers
    ]
    tree = {
        "admin-state": "enable",
        "autonomous-system": bgp.number,
        "router-id": bgp.router_id,
        "best-path-selection": {"always-compare-med": True},
        "afi-safi": families,
        "group": [_group(bgp, family) for family in bgp.families],
        "neighbor": neighbors,
    }
    return {"srl_nokia-bgp:bgp": tree}


def _group(bgp: BgpSpeaker, family: BgpFamily) -> Tree:
    """The peer group of the sessions of one address family."""
    return {
        "group-name": f"fabric-{family.name}",
        "export-policy": [f"announced-{family.name}"],
        "import-policy": [f"fabric-{family.name}"],
        "failure-detection": {"fast-failover": True} | ({"enable-bfd": True} if bgp.bfd else {}),
        "afi-safi": [
            {
                "afi-safi-name": f"{COMMON}:{any_family.name}-unicast",
                "admin-state": "enable" if any_family is family else "disable",
            }
            for any_family in bgp.families
        ],
        "timers": {
            "connect-retry": bgp.connect,
            "hold-time": bgp.hold,
            "keepalive-interval": bgp.keepalive,
            "minimum-advertisement-interval": 1,
        },
    }


def _prefix_sets(family: BgpFamily) -> list[Tree]:
    """The set of all prefixes of the fabric, and one for each policy with preferred prefixes."""
    length = f"{family.length}..{family.length}"
    fabric_prefixes = {"ip-prefix": family.pool, "mask-length-range": length}
    return [{"name": f"fabric-{family.name}", "prefix": [fabric_prefixes]}] + [
        {
            "name": policy,
            "prefix": [{"ip-prefix": prefix, "mask-length-range": "exact"} for prefix in preferred],
        }
        for policy, preferred in family.policies()
        if preferred
    ]


def _policies(bgp: BgpSpeaker, family: BgpFamily) -> list[Tree]:
    """The import policies of a family, which prefer by MED, and the export policy."""
    fabric_set = f"fabric-{family.name}"

    def statement(name: str, prefixes: str, metric: int) -> Tree:
        """A statement that gives routes to a set of prefixes a MED."""
        short_paths = {"as-path-length": {"value": bgp.longest, "operator": "le"}}
        return {
            "name": name,
            "match": {"prefix": {"prefix-set": prefixes}, "bgp": short_paths},
            "action": ACCEPT | {"bgp": {"med": {"operation": "set", "value": metric}}},
        }

    def policy(name: str, *statements: Tree) -> Tree:
        """A policy that refuses all that no statement takes."""
        return {"name": name, "default-action": REJECT, "statement": list(statements)}

    announced = {"name": "10", "match": {"prefix": {"prefix-set": fabric_set}}, "action": ACCEPT}
    policies = []
    for name, preferred in family.policies():
        statements = [statement("20", fabric_set, 1)]
        if preferred:
            statements.insert(0, statement("10", name, 0))
        policies.append(policy(name, *statements))
    return [*policies, policy(f"announced-{family.name}", announced)]
