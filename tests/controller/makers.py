"""What several test modules of this folder and of others use."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from unittest.mock import create_autospec

import pytest
from click.testing import CliRunner

from compilers.tables.folders.build_folder import load
from compilers.tables.folders.folder_contents import identity_in
from compilers.targets.openflow.encoder import Encoder
from controller.rollout.build_history import BuildHistory
from controller.settings import Duties
from controller.switches.current import current_of
from inventory.problems import InputError
from polarfab.cli import cli
from polarfab.fabric import Fabric
from tests.polarfab.forked import command_line
from tests.waiting import until

POLARFAB, COPY = str(Path(sys.executable).with_name("polarfab")), "a copy of it runs"

SWITCHES, STRANGER, NOBODY = 13, 0xDEAD, 1

BRIDGES = {**{f"s{v}": v + 1 for v in range(SWITCHES)}, "x": STRANGER}

PORTS = count(7001)

END_OF_LOG = 3000
"""Characters of a log that a failed test prints."""

CLONE_NEWNET = 0x40000000


@contextmanager
def own_network():
    """This thread, and what it starts, in a network namespace of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open() as before:
        assert libc.unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            assert libc.setns(before.fileno(), CLONE_NEWNET) == 0


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def connect(ovs, port, *names, how="tcp"):
    """Have these bridges look for a controller there, at once."""
    target = f"{how}:127.0.0.1:{port}"
    ovs.vsctl(*[word for name in names for word in ("--", "set-controller", name, target)][1:])


def leave(ovs, *names):
    """Cut these bridges off; they keep their rows as long as they look for some controller."""
    connect(ovs, NOBODY, *names)


def compile_into(folder, spec, quick=False):
    """`polarfab compile SPEC -o FOLDER`, without a process that imports everything anew."""
    failures = () if quick else None
    Fabric.from_spec(spec).save(folder, lambda made: verified(made.verify(failures=failures)))
    return folder


def called(*words):
    """`polarfab WORDS`, without a process that imports everything anew."""
    words = [*map(str, words)]
    done = CliRunner().invoke(cli, words)
    if isinstance(done.exception, InputError):
        return subprocess.CompletedProcess(words, 2, done.stdout, f"{done.exception}\n")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def verified(found):
    assert found.passed
    return found


def begun(words, log, environment):
    """A process that writes to a log; polarfab is a copy of one that has imported it, and so is a
    script of ours after `COPY`.
    """
    program, *words = map(str, words)
    how = {"out": log.fileno(), "environment": environment}
    if program == POLARFAB:
        return command_line().start(*words, **how)
    if program == COPY:
        script, *words = words
        how |= {"script": script, "apart": False, "copies": True, "nice": 0}
        return command_line().start(*words, **how)
    return subprocess.Popen(
        [program, *words], stdout=log, stderr=subprocess.STDOUT, env=environment
    )


class Running:
    """A controller in a process of its own, and all bridges connected to it, or those given.

    command(port, status file) is what to run.
    """

    def __init__(self, switches, folder, command, port=None, bridges=None, **environment):
        self.port = port or next(PORTS)
        self.status_file, self.log = folder / "status.json", folder / "log"
        self.status_file.unlink(missing_ok=True)  # what an earlier one said is not its word
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
        with self.log.open("w") as log:
            self.process = begun(command(self.port, self.status_file), log, environment)
        try:
            until(self.listens, f"a controller on {self.port}")
            if names := BRIDGES if bridges is None else bridges:
                connect(switches, self.port, *names)
        except BaseException:
            self.process.kill()
            raise

    def listens(self):
        assert self.process.poll() is None, self.log.read_text()
        return f"{self.port:04X} 00000000:0000 0A" in Path("/proc/thread-self/net/tcp").read_text()

    def status(self):
        assert self.process.poll() is None, self.log.read_text()
        return json.loads(self.status_file.read_text()) if self.status_file.exists() else None

    def wait_for(self, number, *keys):
        """The status, once so many switches are programmed and something stands under the keys."""

        def reached():
            status = self.status()
            good = status and len(status["programmed"]) == number
            return good and all(status[key] for key in keys) and status

        return until(reached, f"{number} programmed; {self.log}")

    def says(self, text):
        until(lambda: text in self.log.read_text(), f"{text!r} in {self.log}")

    def stop(self, number=signal.SIGTERM):
        """End it as an operator would; it says so in its last line."""
        self.process.send_signal(number)
        code, text = self.process.wait(20), self.log.read_text()
        assert (code, "Traceback" in text) == (0, False), text[-END_OF_LOG:]
        last, name = text.splitlines()[-1], signal.Signals(number).name
        assert f"ended by {name}; switches keep" in last or f'"node": "{name}"' in last


def polarfab(build, framework, *options):
    """The command of a controller, without the process that serves HTTP if nobody reads it."""
    api = () if "--http" in options else ("--http", "none")

    def command(port, status_file):
        where = ("--listen", f"127.0.0.1:{port}", "--status-file", status_file, *api)
        return [POLARFAB, "controller", build, "--framework", framework, *where, *options]

    return command


OTHERS_TRY_RYU = pytest.mark.parametrize(
    "framework", [pytest.param("ryu", marks=pytest.mark.long), "os-ken"], scope="module"
)
"""For a test in a file whose other tests run under Ryu."""


def rows(ovs, vertex):
    """The switch's rows as Open vSwitch has them, without counters, ages and that of discovery."""
    text = ovs.ofctl("--no-stats", "dump-flows", vertex)
    found = [line.strip() for line in text.splitlines() if "cookie" in line]
    return [row for row in found if "cookie=0x504600000000000d" not in row]


@cache
def program_of(build):
    """The encoder of a build folder, and how many classes each switch has."""
    made = load(build)
    return Encoder(made), (made.tables.classes.port > 0).sum(axis=1).tolist()


def has_program(ovs, vertex, build):
    found, (encoder, classes) = rows(ovs, f"s{vertex}"), program_of(build)
    groups = ovs.ofctl("dump-groups", f"s{vertex}").count("group_id=")
    mark = f"cookie=0x5047{encoder.build.identity[:12]}"
    counted = len(found), groups
    expected = encoder.row_count(vertex), classes[vertex]
    return counted == expected and any(mark in row for row in found)


def loaded(build):
    """A build as a controller has it that has loaded it."""
    return current_of(build, Encoder(build))


READ = {}
"""Builds in memory by their identities."""


def read_once(folder):
    """What `read_build` makes of a sound build, unverified; the same build is read once."""
    identity = identity_in(folder)
    if identity not in READ:
        READ[identity] = load(folder, in_memory=True)
    return loaded(READ[identity])


class Unwatched:
    """A keeper that knows nothing of links and switches."""

    is_settled = True
    holds_mixture = False
    duties = Duties(discover=False)

    def links_record(self):
        return {}

    def foresee(self, build):
        return build

    def foresee_move(self, link_state, old, new):
        assert not link_state
        return old, new

    def take_over(self, known, _named_by=None):
        assert not known

    def take_over_tables(self, known):
        assert not known

    def expect(self):
        """Nothing follows."""

    def detour_work(self, _, only_certain, only_if_failed):
        """Nothing fails."""


def no_history():
    """Keeps no builds."""
    history = create_autospec(BuildHistory, instance=True)
    history.take_damaged_copies.return_value = []
    history.kept_builds.return_value = history.entries_as_data.return_value = []
    history.take_damage_report.return_value = ""
    return history
