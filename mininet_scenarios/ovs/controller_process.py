"""The process `polarfab controller` of an engine: start, wait, kill, and its log."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from compilers.forwarding.program import program_of
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load
from compilers.tables.folders.replaced_folder import new_build
from mininet_scenarios.scenario.engine import (
    ControllerRepair,
    EngineError,
    Outage,
    Progress,
    Setup,
    ordered,
)

CONTROLLER_ADDRESS = "127.0.0.1:6653"
PROCESS_POLL = 0.05
"""Seconds between two looks at the controller's status."""
OFTEN = 0.005
"""The same, while it has to be caught in a round."""
CATCH = 30.0
"""Seconds until it must have come to a round."""
STANDING = 5.0
"""Seconds after which an error of a switch does not pass: the controller has tried it again."""


class ControllerProcess:
    """The controller of an engine's first build, which it has in a folder of its own."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.folder = setup, setup.work.resolve() / "current"
        self.status_file = setup.work / "controller.json"
        self.log = setup.work / "controller.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.source = self.before = setup.folders[0]
        self.moving = False
        self._settled: dict[str, Any] = {}
        self._repairs = 0
        self._put()

    @property
    def build(self) -> Build:
        """The build that it has, or is to move to."""
        return load(self.folder)

    def start(self) -> None:
        """Start it; switches that connect get their programs."""
        command = [sys.executable, "-P", "-m", "polarfab", "controller", str(self.folder)]
        command += ["--framework", self.setup.framework, "--listen", CONTROLLER_ADDRESS]
        command += ["--status-file", str(self.status_file)]
        # Its LLDP frames would count as packets over links. Ports tell which links are down.
        command += ["--no-discover"] if self.setup.repair else ["--no-repair"]
        if self.setup.unverified:
            command += ["--unverified"]
        self.moving, self._repairs, self._settled = False, 0, {}
        with suppress(OSError):  # of an earlier run, or controller
            self.status_file.unlink()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def move(self, folder: Path) -> None:
        """Let it move to another build, in rounds; where none runs, the next begins with that."""
        self.before, self.source = self.source, folder
        other = load(self.source).identity != self.build.identity
        self._put()
        if self.process is not None:
            # Where switches are missing it loads the build at once, and there are no rounds.
            self.moving = other and bool(self.status().get("complete"))
            self.process.send_signal(signal.SIGHUP)

    def settle(self, dark: Set[int], outage: Outage, patience: float, progress: Progress) -> str:
        """Wait until just the switches with power hold the build, and the controller has repaired.

        It returns at once where no controller runs.

        Args:
            dark: datapath ids of switches without power.
            outage: what is out of order.
            patience: seconds that this may take.
            progress: takes how many switches hold it.

        Returns:
            Why it has not moved, and stays with the build before; else "".

        Raises:
            EngineError: it has ended, a switch refuses, or `patience` seconds were not enough.
        """
        build, deadline, refused = self.build, time.monotonic() + patience, ""
        faultless = time.monotonic()
        while self.process is not None:
            if self.process.poll() is not None:
                raise EngineError(f"the controller has ended: {self._last_words()}")
            status, names = self.status(), _names(build, dark)
            programmed, rollout = status.get("programmed", []), status.get("rollout") or {}
            ours = self.moving and rollout.get("to") == build.identity
            if ours and rollout["state"] == "failed":
                refused, self.moving, self.source = rollout["reason"], False, self.before
                self._put()
                build = self.build
                continue
            arrived = not self.moving or (ours and rollout["state"] == "done")
            programs = set(programmed) == names and status.get("build") == build.identity
            links = status.get("links") or {}
            if programs and arrived and self._has_repaired(links, build, outage):
                self.moving = False
                self._settled = links
                break
            errors = [item for item in status.get("errors", {}).items() if item[0] in names]
            if self.moving or not errors:
                faultless = time.monotonic()
            elif time.monotonic() > faultless + STANDING:
                raise EngineError("switch {} refused its program: {}".format(*errors[0]))
            if time.monotonic() > deadline:
                raise EngineError(
                    f"{len(programmed)} of {len(names)} switches have their program of build "
                    f"{build.identity} after {patience:g} s (the controller's is "
                    f"{status.get('build')}); its last words: {self._last_words()}"
                )
            progress(len(programmed), len(names))
            time.sleep(PROCESS_POLL)
        return refused

    def _has_repaired(self, links: dict[str, Any], build: Build, outage: Outage) -> bool:
        """Whether the controller knows what is out of order, and has changed all tables.

        It hears of a link by the ports of both switches. Of a link between two switches without
        power nobody tells it anything.
        """
        if not self.setup.repair:
            return True
        wiring = build.wiring
        dead = (wiring.far >= 0) & ~outage.cabling(program_of(build), wiring.names).works
        up = outage.up(wiring.names)
        broken = {
            ordered((wiring.names[v], wiring.names[u]))
            for v, u in zip(np.nonzero(dead)[0].tolist(), wiring.far[dead].tolist(), strict=True)
            if up[v] or up[u]
        }
        reported = {
            link
            for link in map(_switches_of, links.get("down", []))
            if not outage.switches.issuperset(link)
        }
        returned = outage.switches.issuperset(links.get("drained", []))
        return reported == broken and returned and not links.get("repairing", True)

    def repaired(self) -> ControllerRepair:
        """What it told of its last repair when the fabric had settled."""
        before, self._repairs = self._repairs, self._settled.get("repairs", 0)
        repaired_since = self._repairs > before
        seconds = self._settled.get("repair_seconds") if repaired_since else None
        suppressed = frozenset(map(_switches_of, self._settled.get("suppressed", [])))
        return ControllerRepair(seconds, suppressed)

    def pause(self) -> None:
        """Let it do nothing until `resume`; returns when it has stopped, or has ended."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let it go on."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)

    def kill(self, round: int | None = None) -> None:
        """End it as a crash would; in a round (from 1) of the move that is under way.

        Raises:
            EngineError: it has not come to that round, or is beyond the move.
        """
        if self.process is not None:
            if round is not None:
                self._catch(round)
            self.process.kill()
            self.process.wait()
            self.process = None

    def _catch(self, round: int) -> None:
        """Wait until the move under way has come to a round, or is over."""
        deadline, wanted = time.monotonic() + CATCH, self.build.identity
        while time.monotonic() < deadline:
            rollout = self.status().get("rollout") or {}
            if rollout.get("to") == wanted and rollout["state"] != "reading":
                if rollout["state"] != "forth":
                    break
                if rollout["round"] + 1 >= round:
                    return
            time.sleep(OFTEN)
        raise EngineError(
            f"the controller was not seen in round {round} of a move: {self._last_words()}"
        )

    def _put(self) -> None:
        """Have the build in its folder."""
        with new_build(self.folder) as new:
            shutil.copytree(self.source, new, dirs_exist_ok=True)

    def status(self) -> dict[str, Any]:
        """What its status file says; nothing yet when it has just been started."""
        try:
            status: dict[str, Any] = json.loads(self.status_file.read_text())
        except (OSError, ValueError):
            return {}
        return status

    def _last_words(self) -> str:
        """The end of the controller's log."""
        return self.log.read_text(errors="replace").strip()[-600:]


def _switches_of(link: str) -> tuple[str, str]:
    """The two switches of a link in the controller's words, such as `n3 eth2 to n7 eth1`."""
    near, _, far = link.partition(" to ")
    return ordered((near.split()[0], far.split()[0]))


def _names(build: Build, dark: Set[int]) -> set[str]:
    """The names of a build's switches with power."""
    present, wiring = np.flatnonzero(build.topology.present).tolist(), build.wiring
    return {wiring.names[v] for v in present if int(wiring.datapath_id[v]) not in dark}
