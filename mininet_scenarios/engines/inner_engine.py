"""The engines whose switches run in an inner process, from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compilers.targets.target_lookup import target
from mininet_scenarios.machine.preflight import namespaces, require_routers
from mininet_scenarios.machine.runs import add_process
from mininet_scenarios.scenario.engine import (
    SILENT,
    BuildChange,
    ControllerChange,
    Counts,
    Diversion,
    Engine,
    EngineError,
    Event,
    Exercise,
    Flows,
    HostPair,
    HostSample,
    LinkChange,
    Miswire,
    NodeChange,
    Probed,
    Progress,
    Setup,
    Step,
    Throughput,
)
from mininet_scenarios.traffic.probing import decode

CHILD_PATIENCE = 20
"""Seconds that the inner process may take to leave before it is killed."""


@dataclass(frozen=True, slots=True)
class Job:
    """What the inner process is told: absolute folders of the build and for logs, and the rest.

    hosts is how many of each switch's hosts take part, None for all. scratch is a folder that is to
    go even when the outer process is killed, "" for none. rate is `Setup.rate`,
    record `Setup.record` and running the folder of the first build of several, "" for none.
    """

    build: str
    logs: str
    hosts: int | None
    framework: str
    unverified: bool
    scratch: str
    rate: float | None = None
    record: str = ""
    running: str = ""

    @classmethod
    def of(cls, setup: Setup) -> Job:
        """The same in what JSON can hold."""
        work = str(setup.work.resolve())
        return cls(
            build=str(setup.folder.resolve()),
            logs=work,
            hosts=setup.hosts,
            framework=setup.framework,
            unverified=setup.unverified,
            scratch=work if setup.temporary else "",
            rate=setup.rate,
            record=str(setup.record or ""),
            running=str(setup.folders[0].resolve()) if setup.folders else "",
        )


class InnerProcess:
    """A module of ours as PID 1 of fresh namespaces; it answers by `inner_child.serve`."""

    def __init__(self, module: str, job: Job) -> None:
        self.module, self.job = module, job
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it; `call` waits for it."""
        command = [sys.executable, "-P", "-m", self.module, json.dumps(asdict(self.job))]
        with self._log().open("w") as log:
            self.process = subprocess.Popen(
                [*namespaces(), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
                start_new_session=True,
            )
        if self.job.record:
            add_process(Path(self.job.record), self.process.pid, self.module)

    def call(self, name: str, *arguments: Any, progress: Progress | None = None) -> Any:
        """A request and its answer.

        Raises:
            EngineError: it failed inside, or the inner process has ended.
        """
        process = self.process
        if process is None or process.stdin is None or process.stdout is None:
            raise EngineError("the network is not up")
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps({"call": name, "arguments": arguments}) + "\n")
            process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            if "error" in answer:
                raise EngineError(answer["error"])
            if "result" in answer:
                return answer["result"]
            if progress:
                progress(*answer["progress"])
        last_words = self._log().read_text(errors="replace").strip()[-600:]
        raise EngineError(f"the inner process has ended: {last_words}")

    @property
    def running(self) -> bool:
        """Whether it has been started, and not stopped."""
        return self.process is not None

    def stop(self) -> None:
        """Let it leave, and everything with it."""
        process, self.process = self.process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        try:
            process.wait(CHILD_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _log(self) -> Path:
        return Path(self.job.logs) / "inside.log"


class InnerEngine(Engine):
    """An engine that asks the process of a module inside to do what it is asked itself."""

    child: str

    def __init__(self, setup: Setup) -> None:
        self.build, self.setup = setup.build, setup
        self.hosts = HostSample.of(setup.build, setup.hosts)
        self.versions: tuple[int, ...] = (4, 6) if setup.build.addressing.ipv6 else (4,)
        self.inner = InnerProcess(f"{__package__}.{self.child}", Job.of(setup))

    def now(self) -> float:
        """Seconds on the clock that all processes of a machine share."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Sleep, unless that time has passed."""
        time.sleep(max(0.0, seconds))

    def divert(self, diversion: Diversion) -> None:
        """Change a group of a switch."""
        self.inner.call("divert", *astuple(diversion))

    def restore(self) -> None:
        """Put the group back."""
        self.inner.call("restore")

    def apply(self, event: Event) -> None:
        """Let it happen inside."""
        match event:
            case LinkChange(links, up):
                self.inner.call("links", links, up)
            case NodeChange(switches, up):
                self.inner.call("nodes", switches, up)
            case Miswire(one, other, repaired):
                self.inner.call("swap", one, other, repaired)
            case ControllerChange(running, round):
                self.inner.call("run_controller", running, round)
            case BuildChange(build):
                self.inner.call("move", str(self.setup.folders[build].resolve()))
            case _:
                super().apply(event)

    def settle(self, patience: float) -> str:
        """Wait for the controller, where one runs, and for the switches."""
        return str(self.inner.call("settle", patience))

    def probe_start(self, pairs: Sequence[HostPair], interval: float) -> None:
        """Send inside."""
        self.inner.call("probe_start", self.ends(pairs).tolist(), interval)

    def probe_stop(self) -> Probed:
        """What was heard inside."""
        return decode(self.inner.call("probe_stop"))

    def exercise(self, repairs: bool, tolerance: float | None, progress: Progress) -> Exercise:
        """Send packets inside to every rule."""
        return Exercise.read(self.inner.call("exercise", repairs, tolerance, progress=progress))

    def stop(self, step: Step) -> None:
        """Let the inner process leave; everything goes with it."""
        if self.inner.running:
            with step("stop", "take everything down"):
                self.inner.stop()


class MininetEngine(InnerEngine):
    """Open vSwitch, Mininet and the controller, in namespaces of their own."""

    name, child = "mininet", "mininet_child"

    def start(self, step: Step) -> None:
        """Start the inner process, and in it all the rest."""
        switches, links = self.build.tables.switches, self.build.topology.graph.size
        with step(
            "start", f"start {switches} switches with {links} links, and their hosts"
        ) as told:
            self.inner.start()
            self.inner.call("start", progress=told)
        with step("program", f"program {switches} switches through {self.setup.framework}") as told:
            self.inner.call("program", self.setup.patience, progress=told)

    def exchange(self, counts: Counts, progress: Progress, version: int) -> tuple[Counts, ...]:
        """Ping inside, and put the answers into arrays."""
        requests = [[*pair, int(counts[pair])] for pair in map(tuple, np.argwhere(counts).tolist())]
        result = self.inner.call("send", requests, version, progress=progress)
        replies = np.zeros_like(counts)
        shortest, longest = np.full_like(counts, SILENT), np.full_like(counts, SILENT)
        for here, there, count, least, most in result["answers"]:
            replies[here, there] = count
            shortest[there, here], longest[there, here] = least, most
        loads = np.zeros(
            (len(self.build.wiring.names), self.build.wiring.cables().shape[1]), np.int64
        )
        for switch, port, count in result["loads"]:
            loads[switch, port] = count
        return replies, shortest, longest, loads

    def carry(
        self,
        hosts: Sequence[str],
        flows: Flows,
        seconds: float,
        progress: Progress,  # noqa: ARG002
    ) -> Throughput:
        """TCP by iperf3, UDP by a probe with large packets."""
        number = self.numbers(hosts)
        parts = number[flows.source], number[flows.destination], flows.rate
        ends = zip(*(part.tolist() for part in parts), strict=True)
        found = self.inner.call("carry", list(ends), flows.protocol, flows.parallel, seconds)
        loads = np.zeros(self.build.wiring.cables().shape)
        for switch, port, rate in found["loads"]:
            loads[switch, port] = rate
        rates = dict(zip(self.build.wiring.names, loads, strict=True))
        return Throughput(np.array(found["rates"]), rates)

    def prompt(self, terminal: str) -> None:
        """Let whoever sits at a terminal look around; Ctrl-C ends a command, not the network."""
        assert self.inner.process is not None  # noqa: S101
        outer = self.inner.process.pid
        inside = int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])
        before = signal.signal(signal.SIGINT, lambda *_: os.kill(inside, signal.SIGINT))
        try:
            self.inner.call("prompt", terminal)
        finally:
            signal.signal(signal.SIGINT, before)


class FabricEngine(InnerEngine):
    """One Open vSwitch with a bridge per switch, and the controller, in namespaces of their own."""

    name, child = "ovs-fabric", "fabric_child"

    def start(self, step: Step) -> None:
        """Start the inner process, and in it all the rest."""
        switches, links = self.build.tables.switches, self.build.topology.graph.size
        with step("start", f"start {switches:,} bridges with {links:,} cables") as told:
            self.inner.start()
            self.inner.call("start", progress=told)
        with step("program", f"program {switches} switches through {self.setup.framework}") as told:
            self.inner.call("program", self.setup.patience, progress=told)

    def exchange(self, counts: Counts, progress: Progress, version: int) -> tuple[Counts, ...]:
        """Let the collectors send, and answer what arrives."""
        file = Path(self.inner.job.logs) / "round.npz"
        with file.open("wb") as out:
            np.save(out, counts)
        self.inner.call("send", str(file), version, progress=progress)
        with np.load(file) as seen:
            found = tuple(seen[name] for name in ("replies", "shortest", "longest", "loads"))
        file.unlink()
        return found

    def paths(self, pairs: Sequence[HostPair]) -> tuple[tuple[str, ...], ...]:
        """As Open vSwitch traces them."""
        return tuple(map(tuple, self.inner.call("paths", self.ends(pairs).tolist())))


class RoutedEngine(MininetEngine):
    """Every switch is a network namespace whose kernel forwards; hosts as in Mininet's engine."""

    child = "routed_child"

    def __init__(self, setup: Setup, name: str) -> None:
        """`name` is that of the engine and of the target.

        Raises:
            InputError: this machine lacks something that it needs; all of it at once.
        """
        require_routers(name)
        super().__init__(setup)
        self.name = name

    def start(self, step: Step) -> None:
        """Render, start the inner process, and in it all the rest."""
        switches, links = self.build.tables.switches, self.build.topology.graph.size
        rendered = Path(self.inner.job.logs) / self.name
        with step("render", f"render {switches} configurations for {self.name}") as told:
            target(self.name).render(self.build, rendered, progress=told)
        with step("start", f"start {switches} routers with {links} links, and their hosts") as told:
            self.inner.start()
            self.inner.call("start", self.name, str(rendered), progress=told)
