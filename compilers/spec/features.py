"""Abilities that routing policies need of a target, in the words of messages and docs."""

from __future__ import annotations

WEIGHTS = "traffic shared over several ports"
SHARES = "unequal shares of traffic"
INGRESS = "separate routes for packets from hosts"
REPAIR = "repair in the switch"
BOUNCES = "routes by the port that packets came in on"
AGGREGATES = "aggregated routes"
MARKS = "packets marked for the next switch"
TRANSIT = "traffic in transit shared over several ports"
INTERMEDIATES = "packets that carry an intermediate switch"
CHANNELS = "channels that keep a lossless fabric free of deadlock"
IN_PACKETS = frozenset({MARKS, INTERMEDIATES})
FEATURES = IN_PACKETS | frozenset(
    {WEIGHTS, SHARES, INGRESS, REPAIR, BOUNCES, AGGREGATES, TRANSIT, CHANNELS}
)

PROTECT_NEEDS = {
    "none": frozenset[str](),
    "link": frozenset({REPAIR}),
    "node": frozenset({REPAIR}),
    "module": frozenset({REPAIR}),
}
ADJACENT_NEEDS = {
    "minimal": frozenset[str](),
    "bounce": frozenset({BOUNCES}),
}
TRANSIT_NEEDS = {
    "minimal": frozenset[str](),
    "ecmp": frozenset({TRANSIT}),
}
IN_NODE_TYPES = {WEIGHTS: "weights", INGRESS: "ingress", REPAIR: "repair"}
"""The word of each in the `capabilities` of a node type."""
