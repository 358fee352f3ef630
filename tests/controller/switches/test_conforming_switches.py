"""Switches that lack optional parts of OpenFlow 1.3, programmed by the controller, and walked.

The switches are of this folder (`conforming_switch`): written from the specification, they refuse
what they lack, forward by what they were told, and are followed for every pair of hosts.
"""

import json
import os
import re
import signal
from dataclasses import replace
from time import monotonic

import pytest

from compilers.tables.folders.build_folder import load
from compilers.targets.openflow.protocol import MessageType, Multipart
from controller.state import State
from controller.switches.session import PROBE_AFTER, SILENT_AFTER, SLOW_AFTER
from controller.switches.switch import FEATURES_PATIENCE
from tests.compilers.routed import routed
from tests.controller.makers import POLARFAB, begun, compile_into, free_port, listens, loaded
from tests.controller.switches.conforming_fabric import Loopback
from tests.controller.switches.conforming_switch import ConformingSwitch, Shape
from tests.controller.upkeep.makers import unconnected
from tests.waiting import until

NOTHING = Shape(
    bundles=False,
    experimenters=False,
    masks=False,
    fast_failover=False,
    select_liveness=False,
    buckets=2,
    tables=1,
)
SHAPES = {
    "everything": Shape(),
    "nothing optional": NOTHING,
    "no bundles": Shape(bundles=False),
    "no experimenters": Shape(experimenters=False),
    "no masks": Shape(masks=False),
    "no fast failover": Shape(fast_failover=False, select_liveness=False),
    "no liveness of select groups": Shape(select_liveness=False),
    "two buckets": Shape(buckets=2),
    "one table": Shape(tables=1),
}
PROFILES = {
    "everything": "openflow13-ovs",
    "nothing optional": "few-buckets, single-table",
    "no bundles": "openflow13",
    "no experimenters": "openflow13",
    "no masks": "openflow13",
    "no fast failover": "few-buckets",
    "no liveness of select groups": "openflow13",
    "two buckets": "few-buckets",
    "one table": "single-table",
}
UNTOLD = {
    "fast failover that is named and refused": (
        Shape(bundles=False, fast_failover=False, claims=True),
        "few-buckets",
    ),
    "no metadata in any table": (
        Shape(bundles=False, experimenters=False, masks=False, metadata=False, properties=False),
        "single-table",
    ),
    "no features": (replace(NOTHING, features=False), "few-buckets, single-table"),
    "tables of no known size": (Shape(bundles=False, told_rows=0), "openflow13"),
}
TOLD = {"everything", "no masks", "no fast failover", "no liveness of select groups", "one table"}
"""Shapes that features tell: these switches are sent nothing that they refuse."""
REPAIRS = {"everything", "no bundles", "no experimenters", "no masks", "one table"}
BUILD = replace(routed(q=2, spread=True, protect="link", hosts=2), identity="0123456789abcdef")
ONE_HOST = replace(routed(q=2, spread=True, protect="link"), identity="0123456789abcdef")


def in_memory(shape, build=BUILD, odd=None):
    """A controller without sockets, and its fabric; odd: switches of another shape."""
    net, net.keeper = unconnected(build=build, shape=shape)
    for vertex, other in (odd or {}).items():
        net.switches[vertex].shape = other
    net.connect()
    return net


@pytest.mark.parametrize("shape", SHAPES)
def test_a_switch_gets_the_program_that_it_can_do(shape):
    net = in_memory(SHAPES[shape])
    assert net.sessions.errors == {}
    assert net.sessions.complete
    found = set(State.of(net.sessions).status["profiles"].values())
    assert found == ({PROFILES[shape]} if shape != "everything" else set())
    told = {event.kind for event in net.sessions.take_events()}
    assert ("profile" in told) == (shape != "everything")
    refused = sum(switch.refusals for switch in net.fabric.switches)
    assert (refused == len(net.fabric.switches)) == (shape in TOLD)  # they have no description
    assert net.fabric.lost() == []
    assert net.fabric.unanswered() == []
    before = [switch.changes for switch in net.fabric.switches]
    for vertex in range(len(before)):
        net.sessions.present[vertex].request_reading()
    net.run()
    assert net.sessions.complete
    assert [switch.changes for switch in net.fabric.switches] == before


@pytest.mark.parametrize("case", UNTOLD)
def test_a_refusal_counts_where_features_do_not_explain_it(case):
    shape, profile = UNTOLD[case]
    net = in_memory(shape, ONE_HOST)
    assert net.sessions.errors == {}
    assert set(State.of(net.sessions).status["profiles"].values()) == {profile}
    assert net.fabric.lost() == []


@pytest.mark.parametrize("shape", [Shape(experimenters=False), Shape(bundles=False)])
def test_a_program_without_a_simpler_form_is_refused_for_good(shape, monkeypatch):
    """The balance `spread` needs all that Open vSwitch can do."""
    build = replace(routed(q=2, spread=True, marks=True), identity="2123456789abcdef")
    take, messages = ConformingSwitch.take, []

    def counted(switch, data):
        messages.append(data[1])
        assert len(messages) < 20_000, "the controller sends the program without end"
        return take(switch, data)

    monkeypatch.setattr(ConformingSwitch, "take", counted)
    net = in_memory(shape, build)
    states = {net.sessions.state(vertex) for vertex in range(len(net.fabric.switches))}
    assert states == {"refused"}
    assert len(net.sessions.errors) == len(net.fabric.switches)


def test_a_lesser_profile_that_is_enough_is_told_so():
    minimal = replace(routed(q=2), identity="1123456789abcdef")
    net = in_memory(Shape(select_liveness=False), minimal)
    (first, *_) = (event for event in net.sessions.take_events() if event.kind == "profile")
    assert first.text == "openflow13: it does all that this build asks for"


def test_a_switch_that_never_tells_its_features_gets_its_program(monkeypatch):
    """Those that come too late are nobody's answer."""
    take, kept = ConformingSwitch.take, {}

    def slow(switch, data):
        if data[1] == MessageType.MULTIPART_REQUEST and data[9] == Multipart.TABLE_FEATURES:
            kept[switch.datapath_id] = data
            return b""
        return take(switch, data)

    monkeypatch.setattr(ConformingSwitch, "take", slow)
    net = in_memory(Shape(bundles=False), ONE_HOST)
    assert net.sessions.in_sync == set()
    net.tick(FEATURES_PATIENCE - 1)
    assert net.sessions.in_sync == set()
    net.tick(2)
    assert net.sessions.complete
    assert net.fabric.lost() == []
    for vertex, switch in enumerate(net.fabric.switches):
        net.sessions.received(vertex, take(switch, kept[switch.datapath_id]))
    assert net.sessions.send.take() == []


QUICK = {
    "nothing optional",
    "no bundles",
    "no masks",
    "no fast failover",
    "no liveness of select groups",
    "one table",
}


@pytest.mark.parametrize(
    ("shape", "every"),
    [(shape, 4) for shape in sorted(QUICK)]
    + [pytest.param(shape, 1, marks=pytest.mark.long) for shape in SHAPES],
)
def test_links_fail_and_come_back(shape, every):
    net = in_memory(SHAPES[shape], ONE_HOST)
    for link in net.fabric.links[::every]:
        net.fabric.cable(link, up=False, tell=False)
        assert (net.fabric.lost() == []) == (shape in REPAIRS), link
        net.fabric.cable(link, up=False)
        net.run()
        net.tick()
        assert net.fabric.lost() == [], link
        net.fabric.cable(link, up=True)
        net.run()
        net.tick()
    assert net.fabric.lost() == []
    assert net.sessions.errors == {}


def content(net):
    return [(dict(s.tables.rows), dict(s.tables.groups)) for s in net.fabric.switches]


def test_a_program_that_is_too_large_is_refused_with_numbers():
    net = in_memory(Shape(bundles=False, rows=10))
    assert not net.sessions.complete
    text = r"its program needs \d\d+ rows in table \d, of which the switch holds 10"
    assert re.search(text, net.sessions.errors["0"])
    assert content(net) == [({}, {})] * 7
    few = in_memory(Shape(groups=3), ONE_HOST)
    text = r"its program needs \d+ groups of type [a-z ]+, of which the switch holds 3"
    assert re.search(text, few.sessions.errors["0"])
    assert len(few.sessions.errors) == 7
    assert content(few) == [({}, {})] * 7


def test_what_was_done_before_a_refusal_is_taken_back():
    minimal = replace(routed(q=2, hosts=2), identity="1123456789abcdef")
    net = in_memory(Shape(bundles=False), minimal)
    assert net.sessions.complete
    before = content(net)
    for switch in net.fabric.switches[:2]:
        switch.shape = replace(switch.shape, rows=len(switch.tables.rows) + 3)
    current = loaded(BUILD)
    net.sessions.load(current)
    net.run()
    assert set(net.sessions.errors) == {"0", "1"}
    assert net.sessions.errors["0"].startswith("flow mod failed: table full (")
    assert content(net)[:2] == before[:2]
    assert all(switch.tables.rows for switch in net.fabric.switches)
    assert content(net)[2:] == content(in_memory(Shape(bundles=False)))[2:]


def test_no_packet_is_lost_while_a_program_changes_in_steps():
    """Looked at after every third message of a switch."""
    minimal = replace(routed(q=2), identity="1123456789abcdef")
    net = in_memory(Shape(bundles=False), minimal)
    current = loaded(ONE_HOST)
    net.sessions.load(current)
    seen = 0
    while out := net.sessions.send.take():
        for one in out:
            data = bytes(one.data)
            while data:
                length = int.from_bytes(data[2:4], "big")
                answer = net.fabric.switches[one.key].take(data[:length])
                if data[1] in (14, 15) and one.key == 4:
                    seen += 1
                    assert seen % 3 or net.fabric.lost() == []
                data = data[length:]
                while answer:
                    length = int.from_bytes(answer[2:4], "big")
                    net.sessions.received(one.key, answer[:length])
                    answer = answer[length:]
    assert seen > 20
    assert net.fabric.lost() == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A build folder of ER_2 with a host a switch."""
    folder = tmp_path_factory.mktemp("conforming")
    spec = folder / "fabric.yaml"
    spec.write_text(
        "name: lab\ntopology: {family: polarfly, q: 2}\n"
        "routing: {balance: compact-valiant, protect: link}\n"
    )
    return compile_into(folder / "build", spec, quick=True)


@pytest.fixture(scope="module", params=[pytest.param("ryu", marks=pytest.mark.long), "os-ken"])
def controller(request, folder, tmp_path_factory):
    """The port of a controller, and its status file."""
    port = free_port()
    status = tmp_path_factory.mktemp("controller") / "status.json"
    words = [POLARFAB, "controller", folder, "--framework", request.param]
    words += ["--listen", f"127.0.0.1:{port}", "--status-file", status]
    with (status.parent / "log").open("w") as log:
        process = begun(words, log, os.environ | {"PYTHONUNBUFFERED": "1"})
    try:
        until(lambda: process.poll() is None and status.exists() and listens(port), "listening")
        yield port, status
        assert process.poll() is None
        assert "Traceback" not in (status.parent / "log").read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


@pytest.mark.parametrize("shape", ["everything", "nothing optional"])
def test_over_the_network(shape, controller, folder):
    port, status_file = controller
    net = Loopback(load(folder), SHAPES[shape], port)
    try:
        programmed = {"complete": True, "errors": {}}.items()
        profiles = {PROFILES[shape]} - {"openflow13-ovs"}

        def ready():
            said = json.loads(status_file.read_text())
            named = set(said["profiles"].values()) == profiles
            told = programmed <= said.items() and named  # perhaps of the shape before
            return told and net.fabric.lost() == [] and net.fabric.unanswered() == []

        net.until(ready, "all switches programmed")
        every = net.fabric.links[::4] if shape == "nothing optional" else []
        for link in every:
            net.fabric.cable(link, up=False)
            net.until(lambda: net.fabric.lost() == [], f"all pairs without {link}")
            net.fabric.cable(link, up=True)
        net.until(lambda: net.fabric.lost() == [], "all pairs")
    finally:
        net.close()


def test_a_hung_switch_delays_no_repair_of_others(controller, folder):
    """62 ms became 6.1 s, for the minute until it was cut off."""
    port, status_file = controller
    log, hung = status_file.parent / "log", 3
    net = Loopback(load(folder), Shape(), port)
    try:
        said = lambda: json.loads(status_file.read_text())  # noqa: E731
        net.until(lambda: said()["complete"] and net.fabric.lost() == [], "all programmed")
        net.hung.add(net.sockets[hung])
        began = monotonic()
        net.until(
            lambda: monotonic() - began > PROBE_AFTER + SLOW_AFTER + 1, "it is found to be slow"
        )
        link = next(one for one in net.fabric.far if one[0] == hung)
        far = net.fabric.far[link]
        before = log.read_text().count("in place after")
        net._send(far[0], net.fabric.switches[far[0]].link(far[1], False))
        net.until(lambda: log.read_text().count("in place after") > before, "repaired")
        took = re.findall(r"in place after (\d+) ms", log.read_text())[-1]
        assert int(took) < 1000, f"{took} ms"
        net.until(lambda: f"switch {hung} does not answer" in log.read_text(), "cut off")
        assert monotonic() - began < 5 * (PROBE_AFTER + SILENT_AFTER)
    finally:
        net.close()
