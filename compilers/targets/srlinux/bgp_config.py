"""BGP in the YANG models of SR Linux: sessions, policies, and BFD on every link.

`device_config` calls `bgp_roots` and `bgp_protocol` with the `BgpSpeaker` of a router, and puts the
results into the configuration of the router.
"""

from __future__ import annotations

from typing import Any

from compilers.targets.routed.bgp.speaker_variables import BgpFamily, BgpSpeaker
from compilers.targets.routed.p2p_variables import P2pRouter

Tree = dict[str, Any]
"""A part of a configuration, as a mapping in the form of the models."""
COMMON = "srl_nokia-common"
"""The YANG module that defines the names of address families."""
MICROSECONDS_PER_MILLISECOND = 1000
"""The model states BFD's intervals in microseconds, `BgpSpeaker` in milliseconds."""
ACCEPT = {"policy-result": "accept"}
"""The action of a statement that takes a route."""
REJECT = {"policy-result": "reject"}
"""The action of a policy for all other routes."""


def bgp_roots(bgp: BgpSpeaker, router: P2pRouter) -> Tree:
    """The parts of BGP at the top of a configuration: policies, and BFD on every link."""
    interval = bgp.interval * MICROSECONDS_PER_MILLISECOND
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
    """The node `protocols` of the network instance.

    Backup paths are installed in advance, so that they are in use as soon as a best path fails.
    """
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
    """The peer group of the sessions of one address family, in which all others are disabled."""
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
            "name": name,
            "prefix": [{"ip-prefix": prefix, "mask-length-range": "exact"} for prefix in preferred],
        }
        for name, preferred in family.policies()
        if preferred
    ]


def _policies(bgp: BgpSpeaker, family: BgpFamily) -> list[Tree]:
    """The import policies of a family, which prefer routes by MED, and its export policy.

    Of several routes to a prefix BGP prefers the one with the least MED: 0 for the prefixes that a
    policy prefers, 1 for all others of the fabric.
    """
    fabric_set = f"fabric-{family.name}"
    policies = []
    for name, preferred in family.policies():
        statements = [_import_statement("20", fabric_set, 1, bgp.longest)]
        if preferred:
            statements.insert(0, _import_statement("10", name, 0, bgp.longest))
        policies.append(_policy(name, statements))
    announced = {"name": "10", "match": {"prefix": {"prefix-set": fabric_set}}, "action": ACCEPT}
    return [*policies, _policy(f"announced-{family.name}", [announced])]


def _import_statement(name: str, prefix_set: str, med: int, longest_path: int) -> Tree:
    """A statement that accepts routes to a set of prefixes, and gives them a MED.

    Args:
        name: the name of the statement.
        prefix_set: the name of the set.
        med: the MED.
        longest_path: the most AS numbers in an accepted path.
    """
    short_paths = {"as-path-length": {"value": longest_path, "operator": "le"}}
    return {
        "name": name,
        "match": {"prefix": {"prefix-set": prefix_set}, "bgp": short_paths},
        "action": ACCEPT | {"bgp": {"med": {"operation": "set", "value": med}}},
    }


def _policy(name: str, statements: list[Tree]) -> Tree:
    """A policy that refuses all routes that no statement takes."""
    return {"name": name, "default-action": REJECT, "statement": statements}
