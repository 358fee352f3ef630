"""A deliberately wrong table in a real Open vSwitch, and its repair."""

from __future__ import annotations

import re

from mininet_scenarios.ovs.openvswitch import PrivateOvs
from mininet_scenarios.ovs.ovsfabric import bridge_name
from mininet_scenarios.scenario.engine import EngineError


class Diverter:
    """Changes one group of one bridge at a time."""

    def __init__(self, ovs: PrivateOvs) -> None:
        self.ovs = ovs
        self.right: tuple[str, str] | None = None

    def divert(self, switch: int, egress: int, port: int) -> None:
        """Make one class of a switch leave by another port, in the switch itself.

        Raises:
            EngineError: it has no group that this would change.
        """
        bridge, group = bridge_name(switch), f"group_id={egress + 1},"
        groups = self.ovs.ofctl("dump-groups", bridge).splitlines()
        right = next((line.strip() for line in groups if group in line), "")
        wrong = re.sub(r"output:\"?[^,\"]+\"?", f"output:{port}", right)
        if right == wrong:
            raise EngineError(f"switch {switch} has no group of egress class {egress} to change")
        self.right = bridge, right
        self._change_group(bridge, wrong)

    def restore(self) -> None:
        """Undo the last `divert`."""
        if self.right:
            self._change_group(*self.right)
            self.right = None

    def _change_group(self, bridge: str, group: str) -> None:
        """Returns when packets follow the change: flows cached under the old group are gone."""
        self.ovs.ofctl("mod-group", bridge, group)
        self.ovs.appctl("revalidator/wait")
