"""Our app with those of others: each gets its own events, none gets in the other's way.

Limits hold there, too: more idle connections than files keep no switch out, and a thread that dies
ends the process.
"""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from compilers.tables.folders.build_folder import load
from tests.controller.makers import compile_into, free_port, listens
from tests.controller.switches.conforming_fabric import Loopback
from tests.controller.switches.conforming_switch import Shape
from tests.polarfab.forked import command_line
from tests.waiting import until

THEIRS = "tests.controller.learning_switch", "tests.controller.statistics_poller"
MORTAL = Path(__file__).with_name("killed_thread.py")
FILES, IDLE = 400, 600
FOREIGN = (0xF1, 0xF2)
ONE, OTHER = bytes([2, 0, 0, 0, 0, 1]), bytes([2, 0, 0, 0, 0, 2])


def packet_in(port, target, source):
    match = struct.pack("!HHHBBI4x", 1, 12, 0x8000, 0, 4, port)
    body = struct.pack("!IHBBQ", 0xFFFFFFFF, 60, 0, 0, 0) + match + bytes(2)
    frame = target + source + bytes(48)
    return struct.pack("!BBHI", 4, 10, 8 + len(body) + len(frame), 0) + body + frame


def test_a_learning_switch_and_a_poller_run_beside_ours(tmp_path):
    (tmp_path / "fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 3}\n")
    folder, status, file = tmp_path / "build", tmp_path / "status.json", tmp_path / "seen"
    compile_into(folder, tmp_path / "fabric.yaml", quick=True)
    port = free_port()
    file.touch()
    environment = {
        **os.environ,
        "OTHER_APPS_FILE": str(file),
        "PYTHONWARNINGS": "ignore",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    environment.pop("PYTHONUNBUFFERED", None)  # what is told is in the log at once all the same
    environment.pop("EVENTLET_NO_GREENDNS", None)
    apps = [word for app in THEIRS for word in ("--app", app)]
    where = ("--listen", f"127.0.0.1:{port}", "--status-file", status, "--http", "none")
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [
                *("prlimit", f"--nofile={FILES}:{FILES}", sys.executable, MORTAL, "ticks"),
                *("controller", folder, "--framework", "ryu", *where, *apps),
            ],
            stdout=log,
            stderr=log,
            env=environment,
        )
    try:
        until(lambda: process.poll() is not None or listens(port), "listening")
        with ExitStack() as idle:
            for _ in range(IDLE):
                idle.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            run(Loopback(load(folder), Shape(), port, FOREIGN), status, file)
        said = (tmp_path / "log").read_text()
        assert "Traceback" not in said
        assert "did not identify itself as an OpenFlow 1.3 switch: too many connections" in said
        process.send_signal(signal.SIGUSR1)
        assert process.wait(20) != 0
        assert "has stopped: " in (tmp_path / "log").read_text()
    finally:
        process.kill()
        process.wait(20)


def run(net, status, file):
    def seen(what, *keys):
        lines = [json.loads(line) for line in file.read_text().splitlines() if line[-1] == "}"]
        return [
            tuple(one[key] for key in ("switch", *keys)) for one in lines if one["what"] == what
        ]

    try:
        ours = {switch.datapath_id for switch in net.fabric.switches}
        net.until(lambda: status.exists() and json.loads(status.read_text())["complete"], "ours")
        assert net.fabric.lost() == []
        rows = {s.datapath_id: len(s.tables.rows) for s in (*net.fabric.switches, *net.others)}
        net.until(lambda: {*rows.items()} <= {*seen("rows", "rows")}, "rows of each switch")
        # A name server that does not answer would stop repairs while another app looks up a name.
        beside = 254, "eventlet.support.greendns"
        assert {*seen("features", "tables", "resolver")} == {(number, *beside) for number in rows}

        first = net.others[0]
        net.tell(first, packet_in(1, OTHER, ONE))
        net.tell(first, packet_in(2, ONE, OTHER))
        net.until(lambda: len(first.tables.rows) == 2, "a learned address")
        assert {*seen("packet", "port")} == {(FOREIGN[0], 1), (FOREIGN[0], 2)}

        link = net.fabric.links[0]
        net.fabric.cable(link, up=False)
        net.until(lambda: net.fabric.lost() == [], "a repair")
        vertex = net.fabric.switches[link[0]].datapath_id
        net.until(lambda: (vertex, link[1]) in seen("port", "port"), "a port for the others")
        said = json.loads(status.read_text())
        assert said["errors"] == {} == said["foreign"]
        assert {int(number, 16) for number in said["unknown"]} == {*FOREIGN}
        assert ours.isdisjoint(FOREIGN)
    finally:
        net.close()


NO_START = """
from ryu.base.app_manager import RyuApp
class NoStart(RyuApp):
    start = None
"""
NO_LISTENER = """
from ryu.base.app_manager import RyuApp, lookup_service_brick
from ryu.lib import hub
class App(RyuApp):
    def start(self):
        super().start()
        hub.spawn(lambda: hub.kill(lookup_service_brick("ofp_event").main_thread))
        return hub.spawn(hub.sleep, 99)
"""


UNUSABLE = {
    "no.such_app": "No module named 'no'",
    "tests.waiting": "no class of an app in tests.waiting",
    f"{THEIRS[0]} --nope 1": "unrecognized arguments: --nope",
    f"{THEIRS[0]} 'open": "No closing quotation",
    " ": "Empty module name",
    NO_START: "'NoneType' object is not callable",
}


def test_an_app_that_cannot_be_used_is_one_message(tmp_path):
    """All of them in one process, which ends as each would."""
    done = with_apps(tmp_path, *UNUSABLE)
    lines = done.stderr.splitlines()
    assert lines[1::2] == ["2"] * len(UNUSABLE), done.stderr
    for line, given in zip(lines[::2], UNUSABLE.values(), strict=True):
        assert re.search(f"--app: required modules of apps for ryu.*{given}", line)


def test_the_controller_ends_with_its_listener_whatever_other_apps_go_on(tmp_path):
    """Its class has a common name."""
    done = with_apps(tmp_path, NO_LISTENER)
    assert done.stderr.splitlines()[-1] == "3"
    assert "ryu stopped listening" in done.stderr


EACH = """
import sys
from polarfab import cli
for words in sys.argv[1:]:
    sys.argv[1:] = words.split("|")
    try:
        cli.main()
    except SystemExit as ended:
        print(ended.code, file=sys.stderr)
"""


def with_apps(folder, *apps):
    """A process that runs a controller with each module, or the text of one; its exit statuses."""
    (folder / "fabric.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 2}\n")
    build = compile_into(folder / "build", folder / "fabric.yaml", quick=True)
    words = []
    for app in apps:
        if "\n" in app:
            (folder / "app.py").write_text(app)
        where = ("--listen", f"127.0.0.1:{free_port()}", "--http", "none", "--framework", "ryu")
        named = str(folder / "app.py") if "\n" in app else app
        words.append("|".join(map(str, ("controller", build, *where, "--app", named))))
    (folder / "each.py").write_text(EACH)
    how = {"script": str(folder / "each.py"), "apart": False, "nice": 0, "copies": True}
    return command_line().run(*words, timeout=60, **how)
