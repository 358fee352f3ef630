"""What a fabric tells: things that happened to switches."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

Kind = Literal[
    "connected",
    "programmed",
    "refused",
    "error",
    "left",
    "complete",
    "unknown",
    "duplicate",
    "stranger",
    "barred",
    "malformed",
    "silent",
    "loaded",
    "kept",
    "round",
    "moved",
    "link-down",
    "link-up",
    "suppressed",
    "reused",
    "drained",
    "back",
    "repaired",
    "miswired",
    "wired",
    "shifted",
    "leader",
    "deposed",
    "store",
    "contested",
    "not-ready",
    "inherited",
    "status",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth telling: its kind, the node's name (or datapath id, or address), details.

    at is when, in seconds of the monotonic clock.
    """

    kind: Kind
    node: str
    text: str = ""
    at: float = field(default_factory=monotonic, compare=False)
