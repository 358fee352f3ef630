"""The process `polarfab controller` of an engine: starts it, reads its status, and ends it.

The child of an engine with a controller (`mininet_scenarios.engines.inner_child`) has one. The
process reads its build from a folder, again at SIGHUP, and writes a status file.
"""

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
from mininet_scenarios.scenario.engine import EngineError, Progress, Setup
from mininet_scenarios.scenario.observations import ControllerRepair
from mininet_scenarios.scenario.outage import Outage, ordered

CONTROLLER_ADDRESS = "127.0.0.1:6653"
"""Where the controller listens for switches."""
STATUS_POLL = 0.05
"""Seconds between two readings of the controller's status."""
ROUND_POLL = 0.005
"""Seconds between two readings while the controller is to be killed in a round of a move."""
ROUND_PATIENCE = 30.0
"""Seconds within which the controller must come to a round."""
ERROR_PATIENCE = 5.0
"""Seconds after which an error of a switch is final: the controller has tried the program again."""
LOG_CHARACTERS = 600
"""Most characters of the log's end that an error has."""


class ControllerProcess:
    """The controller of an engine. It starts with the engine's first build."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.folder = setup, setup.work.resolve() / "current"
        """The folder from which the controller reads its build."""
        self.status_file = setup.work / "controller.json"
        self.log = setup.work / "controller.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.build_folder = setup.folders[0]
        """The folder whose build the controller has now."""
        self.folder_before = setup.folders[0]
        """The folder whose build the controller had before the last move."""
        self.moving = False
        """Whether the controller carries out a move in rounds."""
        self._settled_links: dict[str, Any] = {}
        """The part `links` of the controller's status when `settle` last returned."""
        self._repairs = 0
        """The repairs that the controller had counted when `repaired` was last called."""
        self._copy_build()

    @property
    def build(self) -> Build:
        """The build that the controller has, or is to move to."""
        return load(self.folder)

    def start(self) -> None:
        """Start the controller; switches that connect get their programs."""
        command = [sys.executable, "-P", "-m", "polarfab", "controller", str(self.folder)]
        command += ["--framework", self.setup.framework, "--listen", CONTROLLER_ADDRESS]
        command += ["--status-file", str(self.status_file)]
        # LLDP frames would count as packets over links. Ports tell which links are down.
        command += ["--no-discover"] if self.setup.repair else ["--no-repair"]
        if self.setup.unverified:
            command += ["--unverified"]
        self.moving, self._repairs, self._settled_links = False, 0, {}
        with suppress(OSError):
            self.status_file.unlink()  # an earlier controller may have written one
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def move(self, folder: Path) -> None:
        """Let the controller move to another build, in rounds.

        If no controller runs, the next one starts with this build.
        """
        self.folder_before, self.build_folder = self.build_folder, folder
        differs = load(self.build_folder).identity != self.build.identity
        self._copy_build()
        if self.process is not None:
            # If switches are missing, the controller loads the build at once, without rounds.
            self.moving = differs and bool(self.status().get("complete"))
            self.process.send_signal(signal.SIGHUP)

    def settle(
        self, unpowered: Set[int], outage: Outage, patience: float, progress: Progress
    ) -> str:
        """Wait until all switches with power hold the build, and the controller has repaired.

        It returns at once where no controller runs.

        Args:
            unpowered: datapath ids of switches without power.
            outage: the links, switches and cables that are out of order.
            patience: the most seconds to wait.
            progress: takes how many switches hold the build.

        Returns:
            Why the controller has not moved, and stays with the build before; else "".

        Raises:
            EngineError: the controller has ended, a switch refuses its program, or `patience`
                seconds were not enough.
        """
        build, deadline, refusal = self.build, time.monotonic() + patience, ""
        last_without_errors = time.monotonic()
        while self.process is not None:
            code = self.process.poll()
            if code is not None:
                end = f"signal {-code}" if code < 0 else f"exit code {code}"
                raise EngineError(f"the controller has ended ({end}): {self._last_words()}")
            status, names = self.status(), _powered_names(build, unpowered)
            move = self._move(status, build)
            if move.get("state") == "failed":
                refusal, self.moving = move["reason"], False
                self.build_folder = self.folder_before
                self._copy_build()
                build = self.build
                continue
            if self._has_settled(status, build, names, outage):
                self.moving = False
                self._settled_links = status.get("links") or {}
                break
            errors = [
                (name, error) for name, error in status.get("errors", {}).items() if name in names
            ]
            if self.moving or not errors:
                last_without_errors = time.monotonic()
            elif time.monotonic() > last_without_errors + ERROR_PATIENCE:
                name, error = errors[0]
                raise EngineError(f"switch {name} refused its program: {error}")
            programmed = status.get("programmed", [])
            if time.monotonic() > deadline:
                raise EngineError(
                    f"{len(programmed)} of {len(names)} switches have their program of build "
                    f"{build.identity} after {patience:g} s (the controller's is "
                    f"{status.get('build')}); its last words: {self._last_words()}"
                )
            progress(len(programmed), len(names))
            time.sleep(STATUS_POLL)
        return refusal

    def _move(self, status: dict[str, Any], build: Build) -> dict[str, Any]:
        """The status of the move to a build; {} if the controller does not carry one out."""
        rollout: dict[str, Any] = status.get("rollout") or {}
        return rollout if self.moving and rollout.get("to") == build.identity else {}

    def _has_settled(
        self, status: dict[str, Any], build: Build, names: set[str], outage: Outage
    ) -> bool:
        """Whether the controller's status says that it has nothing left to do.

        Args:
            status: the controller's status.
            build: the build that switches have to hold.
            names: the switches with power.
            outage: the links, switches and cables that are out of order.
        """
        has_arrived = not self.moving or self._move(status, build).get("state") == "done"
        are_programmed = set(status.get("programmed", [])) == names
        return (
            are_programmed
            and status.get("build") == build.identity
            and has_arrived
            and self._has_repaired(status.get("links") or {}, build, outage)
        )

    def _has_repaired(self, links: dict[str, Any], build: Build, outage: Outage) -> bool:
        """Whether the controller knows what is out of order, and has changed all tables.

        The controller learns of a link from the ports of both switches. So it learns nothing of a
        link between two switches without power.
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
        are_back = outage.switches.issuperset(links.get("drained", []))
        return reported == broken and are_back and not links.get("repairing", True)

    def repaired(self) -> ControllerRepair:
        """The last repair, by the controller's status when the fabric had settled."""
        before, self._repairs = self._repairs, self._settled_links.get("repairs", 0)
        repaired_since = self._repairs > before
        seconds = self._settled_links.get("repair_seconds") if repaired_since else None
        suppressed = frozenset(map(_switches_of, self._settled_links.get("suppressed", [])))
        return ControllerRepair(seconds, suppressed)

    def pause(self) -> None:
        """Stop the controller until `resume`; returns when it has stopped, or has ended."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let a stopped controller go on."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)

    def kill(self, round: int | None = None) -> None:
        """End the controller as a crash would.

        Args:
            round: the round (from 1) of the move under way in which to end it; None for now.

        Raises:
            EngineError: the controller has not come to that round, or has ended the move.
        """
        if self.process is not None:
            if round is not None:
                self._wait_for_round(round)
            self.process.kill()
            self.process.wait()
            self.process = None

    def _wait_for_round(self, round: int) -> None:
        """Wait until the move under way has come to a round.

        Raises:
            EngineError: it has not in `ROUND_PATIENCE`, or the move has ended.
        """
        deadline, identity = time.monotonic() + ROUND_PATIENCE, self.build.identity
        while time.monotonic() < deadline:
            rollout = self.status().get("rollout") or {}
            if rollout.get("to") == identity and rollout["state"] != "reading":
                if rollout["state"] != "forth":
                    break
                if rollout["round"] + 1 >= round:
                    return
            time.sleep(ROUND_POLL)
        raise EngineError(
            f"the controller was not seen in round {round} of a move: {self._last_words()}"
        )

    def _copy_build(self) -> None:
        """Copy the build of `build_folder` to the folder from which the controller reads."""
        with new_build(self.folder) as new:
            shutil.copytree(self.build_folder, new, dirs_exist_ok=True)

    def status(self) -> dict[str, Any]:
        """The controller's status file; {} while a controller that was just started has none."""
        try:
            status: dict[str, Any] = json.loads(self.status_file.read_text())
        except (OSError, ValueError):
            return {}
        return status

    def _last_words(self) -> str:
        """The end of the controller's log."""
        return self.log.read_text(errors="replace").strip()[-LOG_CHARACTERS:]


def _switches_of(link: str) -> tuple[str, str]:
    """The two switches of a link in the controller's words, such as `n3 eth2 to n7 eth1`."""
    near, _, far = link.partition(" to ")
    return ordered((near.split()[0], far.split()[0]))


def _powered_names(build: Build, unpowered: Set[int]) -> set[str]:
    """The names of a build's switches with power.

    Args:
        build: the build.
        unpowered: the datapath ids of switches without power.
    """
    present, wiring = np.flatnonzero(build.topology.present).tolist(), build.wiring
    return {wiring.names[v] for v in present if int(wiring.datapath_id[v]) not in unpowered}
