"""The command line in processes of their own, which do not pay for its imports.

A process imports polarfab once (`forked_process`). Each call runs in a copy of it, so calls share
no state: packages that are installed for a call, caches, and what the call imports are gone with
its process. A call has the environment and the network namespace of the thread that asks for it.
"""

from __future__ import annotations

import atexit
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from tests.polarfab.forked_client import begin
from tests.waiting import until

ROOT = Path(__file__).parents[2]
CLIENT, PROCESS = (Path(__file__).with_name(f"forked_{name}.py") for name in ("client", "process"))
SHARED = "POLARFAB_TESTS_COMMAND_LINE"
"""The environment variable with the socket of a process that all workers share."""
PATIENCE = 300
"""Seconds after which a call that hangs is killed: its code is -14, of SIGALRM."""


class Call:
    """A call that runs, with what tests use of `subprocess.Popen`."""

    def __init__(self, link: socket.socket) -> None:
        """Read its process id; the link says its exit code later."""
        self._link = link
        self.pid = int(link.recv(64))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        if self.returncode is None and select.select([self._link], [], [], 0)[0]:
            self.returncode = int(self._link.recv(64))
            self._link.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, when it has ended.

        Raises:
            subprocess.TimeoutExpired: it runs longer.
        """
        if self.returncode is None:
            select.select([self._link], [], [], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("polarfab", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ends just now
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


class CommandLine:
    """The command line of a checkout."""

    def __init__(self, checkout: Path = ROOT, place: str = "") -> None:
        """Start the process that is copied, or use the one with a socket, once it is there."""
        self._checkout = checkout
        if place:
            self._place = place
            until(Path(place).exists, "the process of the command line")
            return
        self._folder = TemporaryDirectory()
        self._place = str(Path(self._folder.name, "calls"))
        self._process = subprocess.Popen(
            [sys.executable, PROCESS, self._place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(checkout)},
            cwd=checkout,
        )

    def ready(self) -> CommandLine:
        """Wait until the process takes calls."""
        if not self._process.stdout.readline():  # type: ignore[union-attr]
            raise AssertionError(f"it has ended: {self._process.wait()}")
        return self

    def share(self) -> None:
        """Let the workers that are started from now on use it."""
        os.environ[SHARED] = self._place

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        self._folder.cleanup()

    def start(
        self,
        *words: object,
        out: int,
        err: int = subprocess.STDOUT,
        environment: dict[str, str] | None = None,
        sites: tuple[Path, ...] = (),
        cwd: Path | None = None,
        patience: int = 0,
        given: int | None = None,
        **more: Any,
    ) -> Call:
        """Begin a call.

        Args:
            words: the words after `polarfab`.
            out: the file of its output.
            err: the file of its errors; that of its output if none is named.
            environment: its environment; that of this process if none is named.
            sites: folders with packages that are installed for this call.
            cwd: its working directory.
            patience: seconds after which it is killed; 0: it is not.
            given: the file of its input; nothing if none is named.
            more: `copies`, whether modules of ours that it starts are copies of it, too, in the
            place of new Pythons; `script`, a file to run in namespaces of its own, or without
            `apart` in those of others, and `nice`.
        """
        path = os.pathsep.join(map(str, (*sites, self._checkout)))
        variables = (os.environ if environment is None else environment) | {"PYTHONPATH": path}
        with Path(os.devnull).open() as nothing:
            files = [nothing.fileno() if given is None else given]
            files += [out, out if err == subprocess.STDOUT else err]
            where = str(cwd or Path.cwd())
            calls = [*map(str, words)]
            return Call(begin(self._place, calls, files, dict(variables), where, patience, **more))

    def __call__(
        self,
        *words: object,
        sites: tuple[Path, ...] = (),
        cwd: Path | None = None,
        out: Path | None = None,
    ) -> tuple[int, str, str]:
        """Exit code, output and errors of a call.

        Args:
            words: the words after `polarfab`.
            sites: folders with packages that are installed for this call.
            cwd: the working directory.
            out: where standard output is appended; nothing: it is returned.
        """
        with TemporaryDirectory() as folder:
            outputs = out or Path(folder, "out"), Path(folder, "err")
            with outputs[0].open("a") as said, outputs[1].open("a") as mistakes:
                files = said.fileno(), mistakes.fileno()
                code = self.start(
                    *words, out=files[0], err=files[1], sites=sites, cwd=cwd, patience=PATIENCE
                ).wait()
            return code, "" if out else outputs[0].read_text(), outputs[1].read_text()

    def run(
        self, *words: object, timeout: float, given: str = "", **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """The same, as `subprocess.run` says it.

        Args:
            words: the words after `polarfab`.
            timeout: seconds that it may take.
            given: its input.
            more: as for `start`.

        Raises:
            subprocess.TimeoutExpired: it runs longer, and is ended.
        """
        with TemporaryFile("w+") as out, TemporaryFile("w+") as err, TemporaryFile("w+") as text:
            text.write(given)
            text.seek(0)
            places = out.fileno(), err.fileno(), text.fileno()
            call = self.start(*words, out=places[0], err=places[1], given=places[2], **more)
            try:
                code = call.wait(timeout)
            finally:
                call.kill()
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess([*map(str, words)], code, out.read(), err.read())

    def program(self, folder: Path) -> Path:
        """Write a program `polarfab` for shells into a folder."""
        folder.mkdir(exist_ok=True)
        file = folder / "polarfab"
        words = shlex.join([sys.executable, "-IS", str(CLIENT), self._place])
        file.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        file.chmod(0o755)
        return file


def printed_apart(
    script: Path, *words: object, timeout: float = 300, given: str = "", nice: int = 0
) -> str:
    """What a script of ours prints in network and process namespaces of its own.

    Args:
        script: its file.
        words: its arguments.
        timeout: seconds that it may take.
        given: its input.
        nice: how nice it is to other processes.
    """
    how = {"script": str(script), "nice": nice, "copies": True}
    done = command_line().run(*words, timeout=timeout, given=given, **how)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@cache
def command_line() -> CommandLine:
    """The command line of this checkout, whose process all tests of a worker share, or of all."""
    if place := os.environ.get(SHARED):
        return CommandLine(place=place)
    shared = CommandLine().ready()
    atexit.register(shared.close)
    return shared
