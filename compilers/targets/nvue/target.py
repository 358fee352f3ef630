"""The nvue target: a startup.yaml for NVUE of Cumulus Linux up to 5.14 (docs/targets/routers.md).

`P2pTarget` does all but what is particular to the system. Sources: routes and BGP:
docs.nvidia.com/networking-ethernet-software/nvue-reference, "Static Routing", "BGP" and "Router
Policy"; subinterfaces: its "Interface" (`base-interface`), and "NVUE Commands" of the Cumulus Linux
user guide (`type sub`, `vlan`); ports: there, "Switch Port Attributes"; what 5.15
changed: its "New and Changed NVUE Commands". Static routes of NVUE have no VRF of a next hop, so
those between VRFs are lines of FRR, as on SONiC ("NVUE Snippets", "/etc/frr/frr.conf Snippets").
"""

from __future__ import annotations

from types import MappingProxyType

from compilers.readers.routers.router_files import RouterFolder
from compilers.targets.devices.tool_settings import AnsibleConnection
from compilers.targets.linux import neighbours
from compilers.targets.nvue.port_names import CUMULUS
from compilers.targets.routed.bgp.bgp_options import BY_FRR, INTERFACE_SESSIONS
from compilers.targets.routed.p2p_links import P2P_AGREEMENTS, P2pTarget
from compilers.targets.routed.p2p_variables import P2pVariables


class Nvue(P2pTarget):
    """Routes of Cumulus Linux."""

    name = "nvue"
    unnumbered = MappingProxyType({"bgp": INTERFACE_SESSIONS})
    summary = "a startup.yaml for NVUE on Cumulus Linux 5.9 to 5.14"
    files = dict.fromkeys(("startup.yaml",), P2pVariables)
    interfaces = CUMULUS
    neighbours = neighbours.FORM
    ansible = AnsibleConnection("ssh", root=True)
    agreements = MappingProxyType({**P2P_AGREEMENTS, **BY_FRR})

    @property
    def folder(self) -> RouterFolder:
        """See `P2pTarget.folder`."""
        return RouterFolder(
            self.name,
            tuple(self.files),
            commands="shares",
        )
