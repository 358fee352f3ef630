"""The common part of inner processes: every public method is a request of the outer process."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from compilers.tables.folders.build_folder import load
from mininet_scenarios.machine.serving import RUN, Reply
from mininet_scenarios.ovs.controller_process import ControllerProcess
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from mininet_scenarios.ovs.ovsfabric import bridge_name
from mininet_scenarios.scenario.engine import (
    EngineError,
    HostSample,
    LinkChange,
    Miswire,
    NodeChange,
    Outage,
)
from mininet_scenarios.traffic.fabric_probe import FabricProbe
from mininet_scenarios.traffic.probing import ProbeProcess


class Diverter:
    """Puts a deliberately wrong table into a bridge, one group at a time, and repairs it."""

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


class InnerChild:
    """A build with the hosts that take part, and a probe over them."""

    def __init__(self, job: dict[str, Any], reply: Reply) -> None:
        self.job, self.reply, self.logs = job, reply, Path(job["logs"])
        self.build = load(Path(job["build"]))
        self.most, names = job["hosts"], self.build.wiring.names
        self.vertex = {name: v for v, name in enumerate(names)}
        self.hosts = HostSample.of(self.build, self.most)
        self.probe: ProbeProcess | FabricProbe | None = None

    def probe_stop(self) -> str:
        """End the probe, and tell what it saw (`probing.decode`)."""
        assert self.probe is not None  # noqa: S101
        return self.probe.stop()

    def _progress(self, done: int, total: int) -> None:
        self.reply({"progress": [done, total]})


class OpenFlowChild(InnerChild, ABC):
    """Switches of a private Open vSwitch, programmed by the controller."""

    def __init__(self, job: dict[str, Any], reply: Reply) -> None:
        super().__init__(job, reply)
        self.ovs = PrivateOvs(RUN / "ovs", logs=self.logs)
        self.controller, self.diverter = ControllerProcess(job), Diverter(self.ovs)

    @property
    @abstractmethod
    def outage(self) -> Outage:
        """What is wrong with the network."""

    @abstractmethod
    def suffer(self, event: LinkChange | NodeChange | Miswire) -> None:
        """Let it happen."""

    def program(self, patience: float) -> None:
        """Wait until the controller says that every switch has its program."""
        expected = int(self.controller.build.topology.present.sum())
        self.controller.wait(expected, patience, self._progress)

    def divert(self, switch: str, egress: int, port: int) -> None:
        """Make one class of a switch leave by another port, in the switch itself.

        The controller is stopped meanwhile: it reads switches back, and would correct this one.
        """
        self.controller.pause()
        try:
            self.diverter.divert(self.vertex[switch], egress, port)
        except EngineError:
            self.controller.resume()
            raise

    def restore(self) -> None:
        """Undo the last `divert`."""
        self.diverter.restore()
        self.controller.resume()

    def links(self, links: list[list[str]], up: bool) -> None:
        """Cut or mend cables."""
        self.suffer(LinkChange(tuple((u, v) for u, v in links), up))

    def nodes(self, switches: list[str], up: bool) -> None:
        """Take power from switches or give it back."""
        self.suffer(NodeChange(tuple(switches), up))

    def swap(self, one: list[str], other: list[str], repaired: bool) -> None:
        """Let two cables change places."""
        self.suffer(Miswire((one[0], one[1]), (other[0], other[1]), repaired))

    def run_controller(self, running: bool, round: int | None) -> None:
        """Kill the controller, in a round of a move, or start one."""
        self.controller.kill(round)
        if running:
            self.controller.start()

    def move(self, folder: str) -> None:
        """Let the controller move the fabric to another build."""
        self.controller.move(folder)

    def settle(self, patience: float) -> str:
        """Wait until switches with power have their programs, and packets follow all changes."""
        identity = self.build.wiring.datapath_id
        dark = {int(identity[self.vertex[name]]) for name in self.outage.switches}
        refused = self.controller.settle(dark, patience)
        self.ovs.appctl("revalidator/wait")
        return refused
