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

from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load
from compilers.tables.folders.replaced_folder import new_build
from mininet_scenarios.scenario.engine import EngineError, Progress, Setup

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
        self.setup, self.folder = setup, setup.work / "current"
        self.status_file = setup.work / "controller.json"
        self.log = setup.work / "controller.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.source = self.before = setup.folders[0]
        self.moving = False
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
        # Predictions are about the tables of the build: only switches repair.
        command += ["--no-repair"]
        if self.setup.unverified:
            command += ["--unverified"]
        self.moving = False
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

    def settle(self, dark: Set[int], patience: float, progress: Progress) -> str:
        """Wait until just the switches with power hold the build; at once where no controller runs.

        Args:
            dark: datapath ids of switches without power.
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
            if set(programmed) == names and status.get("build") == build.identity and arrived:
                self.moving = False
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
        return self.log.read_text(errors="replace").strip()[-600:]


def _names(build: Build, dark: Set[int]) -> set[str]:
    """The names of a build's switches with power."""
    present, wiring = np.flatnonzero(build.topology.present).tolist(), build.wiring
    return {wiring.names[v] for v in present if int(wiring.datapath_id[v]) not in dark}
