"""The nvue target: a startup.yaml for NVUE of Cumulus Linux up to 5.14 (docs/targets/routers.md).

`P2pTarget` has all that routers with addresses on links have in common. In NVUE a static route
cannot name the VRF of its next hop. So routes between VRFs are commands of FRR, as on SONiC, in a
text of the YAML file: a *snippet*. `shares.grammar` reads the commands of the snippet.

The sources are two manuals of NVIDIA. The NVUE reference is
docs.nvidia.com/networking-ethernet-software/nvue-reference; the other one is the user guide of
Cumulus Linux:

- routes and BGP: reference, "Static Routing", "BGP" and "Router Policy";
- subinterfaces: reference, "Interface" (`base-interface`); guide, "NVUE Commands" (`type sub`,
  `vlan`);
- ports: guide, "Switch Port Attributes";
- snippets: guide, "NVUE Snippets", "/etc/frr/frr.conf Snippets";
- changes of 5.15: guide, "New and Changed NVUE Commands".
"""

from __future__ import annotations

from types import MappingProxyType

from compilers.readers.routers.router_files import RouterFolder
from compilers.targets.devices.tool_settings import AnsibleConnection
from compilers.targets.linux import neighbours
from compilers.targets.nvue.port_names import CUMULUS
from compilers.targets.routed.bgp.bgp_options import FRR_AGREEMENTS, INTERFACE_SESSIONS
from compilers.targets.routed.p2p_target import P2P_AGREEMENTS, P2pTarget
from compilers.targets.routed.p2p_variables import P2pVariables

SNIPPET_GRAMMAR = "shares"
"""The grammar of the commands of FRR in the snippet."""


class Nvue(P2pTarget):
    """NVUE of Cumulus Linux, with static routes or BGP."""

    name = "nvue"
    unnumbered = MappingProxyType({"bgp": INTERFACE_SESSIONS})
    summary = "a startup.yaml for NVUE on Cumulus Linux 5.9 to 5.14"
    files = dict.fromkeys(("startup.yaml",), P2pVariables)
    interfaces = CUMULUS
    neighbours = neighbours.FORM
    ansible = AnsibleConnection("ssh", root=True)
    agreements = MappingProxyType({**P2P_AGREEMENTS, **FRR_AGREEMENTS})

    @property
    def folder(self) -> RouterFolder:
        """See `P2pTarget.folder`: the commands of the snippet have a grammar of their own."""
        return RouterFolder(
            self.name,
            tuple(self.files),
            commands=SNIPPET_GRAMMAR,
        )
