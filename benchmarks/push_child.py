"""The inner process of `benchmarks controller`: a fabric's switches in one Open vSwitch.

They are programmed by the controller, and by a bare socket server with the same bytes.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from benchmarks.bare_server import BareServer, PushError
from benchmarks.echo_probe import EchoProbe
from compilers.tables.folders.build_folder import load
from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow.bundled_blocks import WRAPPER_BYTES
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.protocol import (
    ALL_GROUPS,
    ALL_TABLES,
    ANY,
    FLOW_MOD,
    GROUP_MOD,
    MATCH,
    OXM_MATCH,
    FlowCommand,
    GroupCommand,
    MessageType,
    message,
    padded,
)
from mininet_scenarios.engines.inner_child import RUN, prepare, serve
from mininet_scenarios.ovs.controller_process import CONTROLLER_ADDRESS, ControllerProcess
from mininet_scenarios.ovs.openvswitch import PrivateOvs
from mininet_scenarios.ovs.ovsfabric import OvsFabric
from mininet_scenarios.scenario.engine import EngineError, HostSample, Progress, Setup
from mininet_scenarios.scenario.outage import Outage

SAYS, POLL = 10.0, 0.05
"""Seconds until the controller's log must have what its status has, and between two looks."""
PUSH_PATIENCE = 900.0
"""Seconds that a push may take."""
TOOK = re.compile(r"programmed in ([\d.]+) s: the fabric is complete")
"""The controller's line that all switches hold their programs."""
HIGHEST = re.compile(r"VmHWM:\s+(\d+) kB")
"""The most memory of a process, in its status in /proc."""
PATIENT = {
    "op": "update",
    "table": "Controller",
    "where": [],
    "row": {"inactivity_probe": 30_000, "max_backoff": 1001},
}
"""All switches try to connect again at once, every second. Open vSwitch 3.1 takes these only while
a switch is connected; else each backs off by up to 8 s."""
HOST, _, PORT = CONTROLLER_ADDRESS.partition(":")
"""Where the switches connect."""
CPUCLOCK_SCHED = 2
"""Of the kernel's include/linux/posix-timers.h: all threads of a process together."""


def spent(process: int) -> float:
    """Processor seconds of a process since it was started, user and system.

    By its processor clock (clock_getcpuclockid, which Python lacks): the ticks of /proc are 10 ms.
    """
    return time.clock_gettime(~process << 3 | CPUCLOCK_SCHED)


class PushingInside:
    """The requests: every public method is one, with the arguments that the outer process sends."""

    def __init__(self, setup: Setup, progress: Progress) -> None:
        self.setup, self.progress = setup, progress
        self.build = load(setup.folders[0])
        self.ovs = PrivateOvs(RUN / "ovs", logs=setup.work)
        encoder = Encoder(self.build)
        self.programs = {
            datapath_id: encoder.program(vertex)
            for datapath_id, vertex in encoder.by_datapath_id.items()
        }
        self._nothing = {datapath_id: [_everything_deleted()] for datapath_id in self.programs}
        """The stage that takes all rows and groups from each switch."""

    def start(self) -> int:
        """Bring the switches up; how many rows and groups they are to hold in all."""
        prepare()
        self.ovs.start()
        fabric = OvsFabric(self.build, self.ovs, HostSample.of(self.build, 0))
        fabric.start(CONTROLLER_ADDRESS)
        self._push(self._nothing, then=lambda: fabric.database.apply([PATIENT]))
        programs = self.programs.values()
        return sum(
            len(block) for program in programs for block in (*program.groups, *program.flows)
        )

    def wipe(self) -> None:
        """Take all rows and groups from all switches."""
        self._push(self._nothing)

    def bare(self, bundles: bool) -> dict[str, float]:
        """What a bare socket server takes, in bundles as the controller does or without: seconds,
        and processor seconds of its own and of Open vSwitch.
        """
        stages_of = _bundled if bundles else _plain
        stages = {datapath_id: stages_of(program) for datapath_id, program in self.programs.items()}
        own, switches = spent(os.getpid()), self._switches_spent()
        seconds = self._push(stages)
        return {
            "seconds": seconds,
            "processor": spent(os.getpid()) - own,
            "switches": self._switches_spent() - switches,
        }

    def controller(self, framework: str) -> dict[str, float]:
        """Let the controller program the switches, whatever they hold, and end it.

        Returns seconds, processor seconds of its own and of Open vSwitch since it listened, the
        most memory it had (megabytes), the slowest answer to an echo (seconds) and how many rows
        and groups it sent.
        """
        process = ControllerProcess(replace(self.setup, framework=framework))
        process.start()
        number, before = process.process.pid, [0.0, 0.0]

        def began() -> None:
            before[:] = spent(number), self._switches_spent()

        try:
            with EchoProbe((HOST, int(PORT)), PUSH_PATIENCE, began) as probe:
                process.settle(set(), Outage(), PUSH_PATIENCE, self.progress)
            own, switches = spent(number) - before[0], self._switches_spent() - before[1]
            took = self._took()
            status = process.status()
            memory = Path(f"/proc/{number}/status").read_text()
        finally:
            process.kill()
        highest = HIGHEST.search(memory)
        if not highest:
            raise EngineError("the system does not say how much memory the controller took")
        return {
            "seconds": took,
            "processor": own,
            "switches": switches,
            "megabytes": int(highest[1]) / 1024,
            "echo": probe.slowest,
            "sent": sum(status["differences"][what] for what in ("added", "changed", "removed")),
        }

    def _switches_spent(self) -> float:
        """Processor seconds of Open vSwitch."""
        return spent(int((RUN / "ovs" / "ovs-vswitchd.pid").read_text()))

    def _took(self) -> float:
        """Seconds, as the controller's log has it soon after its status says that all is done."""
        deadline = time.monotonic() + SAYS
        log = self.setup.work / "controller.log"
        match = TOOK.search(log.read_text())
        while not match:
            if time.monotonic() > deadline:
                raise EngineError("the controller does not say how long it took")
            time.sleep(POLL)
            match = TOOK.search(log.read_text())
        return float(match[1])

    def _push(
        self, stages: dict[int, list[bytes]], then: Callable[[], object] = lambda: None
    ) -> float:
        """Seconds that a bare server takes.

        Args:
            stages: of each switch, by datapath id.
            then: called while the switches are still connected.
        """
        with closing(BareServer((HOST, int(PORT)), stages)) as server:
            try:
                seconds = server.push(PUSH_PATIENCE)
            except PushError as error:
                raise EngineError(f"bare socket server: {error}") from error
            then()
            return seconds


def _bundled(program: FlowProgram) -> list[bytes]:
    """The stages of a program in a bundle: it is filled, and committed."""
    fill = b"".join((rows.opening(), *program.parts, rows.barrier(0)))
    return [fill, rows.commit() + rows.barrier(1)]


def _plain(program: FlowProgram) -> list[bytes]:
    """The one stage of a program without a bundle."""
    blocks = (*program.groups, *program.flows)
    return [b"".join((*(block[:, WRAPPER_BYTES:].tobytes() for block in blocks), rows.barrier(0)))]


def _everything_deleted() -> bytes:
    """The stage that takes all rows and groups from a switch."""
    flow = FLOW_MOD.pack(
        table=ALL_TABLES,
        command=FlowCommand.DELETE,
        buffer=ANY,
        out_port=ANY,
        out_group=ANY,
        match_type=OXM_MATCH,
        match_length=MATCH.size,
    )
    flows = flow.ljust(padded(len(flow)), b"\0")
    groups = GROUP_MOD.pack(command=GroupCommand.DELETE, group=ALL_GROUPS)
    mods = message(MessageType.FLOW_MOD, 0, flows) + message(MessageType.GROUP_MOD, 0, groups)
    return mods + rows.barrier(0)


if __name__ == "__main__":
    serve(PushingInside)
