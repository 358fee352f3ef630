"""Features that routing policies need of a target, in the words of messages and docs.

A policy needs a set of features, and a target lists those that it has. A policy whose features a
target lacks is refused, with these words (`compilers.policy_support`).
"""

from __future__ import annotations

# Each feature is the text that messages print.
MULTIPATH = "traffic shared over several ports"
UNEQUAL_SHARES = "unequal shares of traffic"
"""Multipath with a weight for each port. A target that lacks it shares equally."""
INGRESS = "separate routes for packets from hosts"
REPAIR = "repair in the switch"
# Packets that came in on the port of their route are sent by another one: they bounce.
BOUNCES = "routes by the port that packets came in on"
AGGREGATES = "aggregated routes"
MARKS = "packets marked for the next switch"
TRANSIT = "traffic in transit shared over several ports"
INTERMEDIATES = "packets that carry an intermediate switch"
CHANNELS = "channels that keep a lossless fabric free of deadlock"
IN_PACKETS = frozenset({MARKS, INTERMEDIATES})
"""Features for which a switch writes something into packets."""
FEATURES = IN_PACKETS | frozenset(
    {MULTIPATH, UNEQUAL_SHARES, INGRESS, REPAIR, BOUNCES, AGGREGATES, TRANSIT, CHANNELS}
)
"""All features."""

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
