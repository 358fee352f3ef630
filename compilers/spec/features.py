"""Features that routing policies need of a target, in the words of messages and docs.

A policy needs a set of features, and a target lists those that it has. A policy whose features a
target lacks is refused, with these words (`compilers.policy_support`).
"""

from __future__ import annotations

# Each feature is the text that messages print.
MULTIPATH = "traffic shared over several ports"
"""Multipath: packets of a class leave by several ports."""
UNEQUAL_SHARES = "unequal shares of traffic"
"""Multipath with a weight for each port. A target that lacks it shares equally."""
INGRESS = "separate routes for packets from hosts"
"""Other next hops for packets from hosts than for packets in transit."""
REPAIR = "repair in the switch"
"""Another port when that of the route is down, without a controller."""
BOUNCES = "routes by the port that packets came in on"
"""Another port for packets that came in on the port of their route: they bounce."""
AGGREGATES = "aggregated routes"
"""One route for the prefixes of a whole supernode."""
MARKS = "packets marked for the next switch"
"""A bit of the packet, which tells the next switch to spread it."""
TRANSIT = "traffic in transit shared over several ports"
"""Multipath for packets in transit, too."""
INTERMEDIATES = "packets that carry an intermediate switch"
"""The random switch of Valiant's routing, in the packet."""
CHANNELS = "channels that keep a lossless fabric free of deadlock"
"""Virtual lanes or priorities, without which packets could wait for each other in a circle."""
IN_PACKETS = frozenset({MARKS, INTERMEDIATES})
"""Features for which a switch writes something into packets."""
FEATURES = IN_PACKETS | frozenset(
    {MULTIPATH, UNEQUAL_SHARES, INGRESS, REPAIR, BOUNCES, AGGREGATES, TRANSIT, CHANNELS}
)
"""All features."""

WITH_BGP = frozenset({MULTIPATH, INGRESS, AGGREGATES, TRANSIT})
"""Features that a system may have with eBGP, which finds paths of its own; it lacks all others."""

PROTECT_NEEDS = {
    "none": frozenset[str](),
    "link": frozenset({REPAIR}),
    "node": frozenset({REPAIR}),
    "module": frozenset({REPAIR}),
}
"""The features that each value of `routing.protect` needs."""
ADJACENT_NEEDS = {
    "minimal": frozenset[str](),
    "bounce": frozenset({BOUNCES}),
}
"""The features that each value of `routing.adjacent` needs."""
TRANSIT_NEEDS = {
    "minimal": frozenset[str](),
    "ecmp": frozenset({TRANSIT}),
}
"""The features that each value of `routing.transit` needs."""
IN_NODE_TYPES = {MULTIPATH: "weights", INGRESS: "ingress", REPAIR: "repair"}
"""Features that a target may have while a type of node lacks them: the name of each in the
`capabilities` of a node type."""
