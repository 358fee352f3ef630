"""The nvue target: a startup.yaml of NVUE, the model of Cumulus Linux (docs/targets/nvue.md).

Static routes: docs.nvidia.com/networking-ethernet-software/nvue-reference, "Static Routing"; ports:
the Cumulus Linux user guide, "Switch Port Attributes".
"""

from __future__ import annotations

import re
from collections.abc import Callable

from compilers.readers.nvue_yaml import nvue
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.features import AGGREGATES
from compilers.targets.options import SET, Chosen
from compilers.targets.routed.control_plane import ROUTING
from compilers.targets.routed.interfaces import Interfaces
from compilers.targets.routed.p2p_links import P2pTarget, P2pVariables
from inventory.problems import InputError

CUMULUS = Interfaces(
    "linux",
    re.compile(r"swp[1-9][0-9]{0,2}(s[0-7])?"),
    "interface names of Cumulus Linux",
    "swp{cage}s{lane}",
    "swp{port}",
    first_lane=0,
)


class Nvue(P2pTarget):
    """Static routes of Cumulus Linux."""

    name = "nvue"
    summary = "a startup.yaml for NVUE on Cumulus Linux"
    files = dict.fromkeys(("startup.yaml",), P2pVariables)
    capabilities = Capabilities(frozenset({AGGREGATES}))
    interfaces = CUMULUS

    read = staticmethod(nvue)

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`.

        Raises:
            InputError: with eBGP.
        """
        super().require(build, chosen)
        if chosen[ROUTING] == "bgp":
            raise InputError.of(
                key=f"{SET} {ROUTING}",
                required="static: NVUE changed its words for BGP between releases",
                given="bgp",
                todo="render target frr, whose frr.conf Cumulus Linux takes without NVUE",
            )

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], P2pVariables]:
        """See `Target.variables`."""
        return self.fabric(build, chosen).variables
