"""What lossless priorities of all systems have in common: their option, and what they refuse.

The additions of EOS and SONiC (`eos_lossless`, `sonic_lossless`) are subclasses. A *lossless
priority* is a priority of PFC (IEEE 802.1Qbb) whose packets are paused, and not dropped.
"""

from __future__ import annotations

from typing import ClassVar, TypeVar

from compilers.tables.build import Build
from compilers.targets.addition import Addition
from compilers.targets.options import OFF, SET, Chosen
from compilers.targets.routed.p2p_fabric import P2pFabric
from inventory.problems import InputError

LOSSLESS = "lossless"
"""The option that asks for lossless priorities."""
Printed = TypeVar("Printed")
"""What the addition gives to the templates of its target (`Addition.printed`)."""


class LosslessAddition(Addition[P2pFabric, Printed]):
    """Lossless priorities of a system."""

    option = LOSSLESS
    grammar_facts = (LOSSLESS,)
    unmarked_balance: ClassVar[str] = "compact-valiant"
    """The balance to choose in place of one that marks packets."""

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Addition.require`: marked packets have VLANs of their own."""
        if build.forwarding.marks:
            required = f"{OFF} with marked packets, whose VLANs have no priorities of their own"
            todo = f"choose balance: {self.unmarked_balance}"
            raise InputError.of(required, chosen[LOSSLESS], todo, key=f"{SET} {LOSSLESS}")

    def require_rounds(self, chosen: Chosen) -> None:
        """See `Addition.require_rounds`: packets of two builds share no channels."""
        reason = "priorities are proved free of deadlock in each build, not between the two"
        todo = "have hosts mark nothing lossless meanwhile, and push without `from`"
        required, given = f"{LOSSLESS}={OFF}", f"{chosen[LOSSLESS]}: {reason}"
        raise InputError.of(required, given, todo, key="from")
