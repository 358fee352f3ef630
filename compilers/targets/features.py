"""Abilities that routing policies need of a target, in the words of messages and docs."""

from __future__ import annotations

WEIGHTS = "traffic shared over several ports"
SHARES = "unequal shares of traffic"
INGRESS = "separate routes for packets from hosts"
REPAIR = "repair in the switch"
AGGREGATES = "aggregated routes"
CHANNELS = "channels that keep a lossless fabric free of deadlock"
FEATURES = frozenset({WEIGHTS, SHARES, INGRESS, REPAIR, AGGREGATES, CHANNELS})

BALANCE_NEEDS = {
    "minimal": frozenset[str](),
    "compact-valiant": frozenset({WEIGHTS, INGRESS}),
    "valiant": frozenset({WEIGHTS, INGRESS}),
    "ugal-pf": frozenset({WEIGHTS, INGRESS}),
}
PROTECT_NEEDS = {
    "none": frozenset[str](),
    "link": frozenset({REPAIR}),
    "node": frozenset({REPAIR}),
}
IN_NODE_TYPES = {WEIGHTS: "weights", INGRESS: "ingress", REPAIR: "repair"}
"""The word of each in the `capabilities` of a node type."""
