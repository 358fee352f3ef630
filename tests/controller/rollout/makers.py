"""What several test modules of this folder and of others use."""

from __future__ import annotations

import os
import re
import signal
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree

from compilers.tables.folders.build_folder import load, write
from compilers.tables.folders.verified_mark import mark_verified
from controller.rollout.build_archive import pack
from mininet_scenarios.engines.inner_engine import MininetEngine
from mininet_scenarios.scenario.engine import Setup
from mininet_scenarios.scenario.outage import ControllerChange
from tests.controller.makers import compile_into
from tests.waiting import until

INTERVALS = 0.08, 0.16
"""Seconds between two packets of a pair: the first that the machine carries counts."""

SPEC = "name: lab\ntopology: {{family: polarfly, q: {}}}\nrouting: {}\ninventory: inventory.yaml\n"

INVENTORY = "generate: {type: copackaged-4x8}\n"

MINIMAL, FULL = "{balance: minimal}", "{balance: compact-valiant, protect: link}"


def compiled(folder, routing, more="", q=3):
    """A verified build in FOLDER/build."""
    (folder / "inventory.yaml").write_text(INVENTORY)
    (folder / "fabric.yaml").write_text(SPEC.format(q, routing) + more)
    return compile_into(folder / "build", folder / "fabric.yaml")


def two_builds(tmp_path):
    """Builds of two policies in folders of their own."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return compiled(tmp_path / "one", MINIMAL), compiled(tmp_path / "two", FULL)


def step(*_):
    return nullcontext(lambda *_: None)


class Site:
    """A fabric on real parts, whose controller takes the build that is put in its folder."""

    def __init__(self, tmp_path, first):
        (work := tmp_path / "work").mkdir()
        self.folder, self.work = work / "current", work
        setup = Setup((load(first),), (first,), work, framework="ryu", temporary=False)
        self.engine = MininetEngine(setup)

    def __enter__(self):
        self.engine.start(step)
        return self

    def __exit__(self, *_):
        self.engine.stop(step)

    @property
    def log(self):
        return (self.work / "controller.log").read_text()

    def move(self, build):
        """Have the controller move to a build, and wait until it has."""
        text = f"all connected switches hold build {load(build).identity}"
        before = self.log.count(text)
        rmtree(self.folder)
        copytree(build, self.folder)
        os.kill(controller_of(self.work), signal.SIGHUP)
        until(lambda: "is complete" in "".join(self.log.split(text)[before + 1 :]), text, 60)


def dump(ovs, vertex):
    """Flows and groups of a switch, without what differs by chance."""
    flows = ovs.ofctl("--no-stats", "dump-flows", f"s{vertex}")
    groups = ovs.ofctl("dump-groups", f"s{vertex}")
    lines = [line.strip() for line in (flows + groups).splitlines()]
    return sorted(re.sub(r" ?cookie=0x0,", "", line) for line in lines if "OFPST" not in line)


CALM = 0.5


def controller_of(folder):
    """The process id of the controller whose status file is in this folder."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(folder / "controller.json").encode() in words:
            return int(process.parent.name)
    return None


def restart(engine, how):
    """End the controller in this way, let packets fly without one, and start it again."""
    if how == signal.SIGKILL:
        engine.apply(ControllerChange(running=False))
    else:
        old = controller_of(engine.setup.work)
        os.kill(old, how)
        until(lambda: controller_of(engine.setup.work) != old, "the controller has ended")
    engine.wait(CALM)
    engine.apply(ControllerChange(running=True))
    engine.settle(60)


def reload(engine):
    """Have the controller load the same build again."""
    log = engine.setup.work / "controller.log"
    before = log.read_text().count("is loaded")
    os.kill(controller_of(engine.setup.work), signal.SIGHUP)
    until(lambda: log.read_text().count("is loaded") > before, "the build is loaded again")
    engine.settle(60)


EVENTS = {
    "killed": lambda engine: restart(engine, signal.SIGKILL),
    "reloaded": reload,
    "ended": lambda engine: restart(engine, signal.SIGTERM),
}


PROVED = {
    "proved": {"delivery": True, "identities": True, "alternates": True, "failures": ["link"]}
}


def sent(folder, build):
    """A build as somebody sends it who says that all is proved."""
    identity = write(build, folder)
    mark_verified(folder, identity, PROVED)
    return replace(build, identity=identity), pack(folder)


def wrong_route(build):
    """All packets of switch 0 to switch 5 back to where they came from."""
    egress = build.tables.routes.egress.copy()
    egress[0, 5] = (egress[0, 5] + 1) % 3
    routes = replace(build.tables.routes, egress=egress)
    return replace(build, tables=replace(build.tables, routes=routes))
