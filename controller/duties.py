"""What the controller does beyond giving switches their program."""

from __future__ import annotations

from dataclasses import dataclass, field

from controller.damping import Damping

RATE = 1000.0
"""LLDP frames a second that the controller sends at most."""
PATIENCE = 5.0
"""Seconds that a switch may be gone before traffic goes around it."""


@dataclass(frozen=True, slots=True)
class Duties:
    """What the keeper (`controller.keeper`) is to do.

    repair: tables follow failures. discover: send LLDP frames, so many a second at most (rate).
    adapt: weights follow loads; None: where the build asks for `ugal-pf`. link_rate: what a port
    carries in bit/s, where switches do not tell. patience: seconds that a switch may be gone.
    """

    repair: bool = True
    discover: bool = False
    rate: float = RATE
    adapt: bool | None = None
    link_rate: float | None = None
    patience: float = PATIENCE
    damping: Damping = field(default_factory=Damping)
