"""The networks that the PolarFly paper compares, with its names for them."""

from __future__ import annotations

from extensions.papers.compared_network import ComparedNetwork

TABLE_V = {
    "PF": ComparedNetwork("polarfly", {"q": 31}, hosts=16),
    "SF": ComparedNetwork("slimfly", {"q": 23}, hosts=18),
    "DF1": ComparedNetwork("dragonfly", {"h": 6, "a": 12}, hosts=6),
    "DF2": ComparedNetwork("dragonfly", {"h": 27, "a": 6, "groups": 163}, hosts=10),
    "JF": ComparedNetwork("jellyfish", {"nodes": 993, "degree": 32}, hosts=16),
    "FT": ComparedNetwork("fat-tree", {"k": 18, "pods": 18}, hosts=18),
}
"""The networks of Table V, by the paper's abbreviations."""
TITLES = {
    "polarfly": "PolarFly",
    "slimfly": "Slim Fly",
    "hyperx": "HyperX",
    "dragonfly": "Dragonfly",
    "jellyfish": "Jellyfish",
    "fat-tree": "Fat tree",
}
"""The paper's names of the families, by ours."""
