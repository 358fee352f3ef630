"""Two controllers, etcd and Open vSwitch, all real: leaders are killed or sleep, others go on."""

from __future__ import annotations

import json
import signal
import socket
import struct
import subprocess

import pytest

from compilers.tables.folders.build_folder import load
from compilers.targets.openflow import group_and_flow_bytes, protocol
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.flow_tables import MARKERS
from compilers.targets.openflow.protocol import ControllerRole, MessageType
from controller.cluster.roles import role_request
from controller.openflow import messages
from mininet_scenarios.engines.inner_child import RUN
from mininet_scenarios.scenario.outage import ControllerChange
from tests.controller.cluster.makers import PORTS, group
from tests.controller.makers import BRIDGES, POLARFAB, SWITCHES, rows
from tests.controller.rollout.makers import INTERVALS, Site, controller_of, dump, two_builds
from tests.controller.rollout.windows import loses_nothing
from tests.waiting import until

pytestmark = pytest.mark.live


def join(ovs, bridges, *instances):
    """Have bridges look for all controllers."""
    targets = [f"tcp:127.0.0.1:{one.port}" for one in instances]
    ovs(*[w for name in bridges for w in ("--", "set-controller", name, *targets)][1:])


def all_have(ovs, build):
    """Whether every switch has the build's mark and as many rows and groups as its program."""
    encoder, identity = Encoder(load(build)), load(build).identity[:12]
    marks = tuple(f"cookie={mark >> 48:#x}{identity}" for mark in MARKERS)
    for vertex in range(SWITCHES):
        program, found = encoder.program(vertex, 0), rows(ovs, f"s{vertex}")
        groups = ovs.ofctl("dump-groups", f"s{vertex}").count("group_id=")
        counted = [sum(map(len, part)) for part in (program.flows, program.groups)]
        marked = any(row.startswith(marks) for row in found)
        if counted != [len(found), groups] or not marked:
            return False
    return True


def another_policy(tmp_path):
    first, then = two_builds(tmp_path)
    return first, then, first


def expansion(tmp_path):
    """All switches are cabled from the start; the new ones are not in use."""
    _, first = two_builds(tmp_path)
    then = tmp_path / "larger"
    subprocess.run([POLARFAB, "expand", first, "--clusters", "quadric:1", "-o", then], check=True)
    return first, then, then


@pytest.mark.long
@pytest.mark.parametrize("builds", [another_policy, expansion])
def test_a_leader_that_is_killed_in_a_move_costs_no_packet(tmp_path, builds):
    """Traffic between all hosts while one dies in round 2 and another finishes its move."""
    first, then, cabled = builds(tmp_path)
    with Site(tmp_path, cabled) as site:
        if cabled != first:
            site.move(first)
        inside = controller_of(site.work)

        def vsctl(*words):
            command = ["nsenter", f"--target={inside}", "--mount", "--net", "ovs-vsctl"]
            subprocess.run([*command, f"--db=unix:{RUN}/ovs/db.sock", *words], check=True)

        def killed(_):
            a.load(then)
            a.says("round 2 of")
            a.kill()
            b.says(f"all connected switches hold build {load(then).identity}")
            until(b.complete, "b has finished")

        with group(tmp_path, first, "--no-repair", inside=inside) as (_, a, b):
            join(vsctl, [f"s{v}" for v in range(len(load(cabled).wiring.names))], a, b)
            until(a.complete, "the fabric is a's")
            site.engine.apply(ControllerChange(running=False))
            loses_nothing(site.engine, INTERVALS, killed, SWITCHES)
            assert "round 1 of" not in b.text(), "it went on and did not begin anew"


@pytest.mark.long
@pytest.mark.parametrize("name", ["ryu", "os-ken"])
def test_a_leader_that_slept_writes_no_more(tmp_path, switches, name):
    """It is stopped in a move; another finishes; it wakes, starts anew, and changes nothing."""
    first, then = two_builds(tmp_path)
    with group(tmp_path, first, "--framework", name) as (_, a, b):
        join(switches.vsctl, BRIDGES, a, b)
        until(a.complete, "the fabric is a's")
        assert all_have(switches, first)
        code, text = b.ask("apply", then, "--token-file", b.tokens, "--to")
        assert code == 2
        assert "send changes to the controller that leads: a" in text
        health = json.loads(b.ask("status", "--to")[1])
        assert (health["role"], health["leader"]) == ("follower", "a")
        b.load(then)  # it moved to it as soon as it led, whatever the fabric had by then
        b.says(
            "nothing is loaded: this controller does not lead (a does); send SIGHUP to the leader"
        )
        a.load(then)
        a.says("round 1 of")
        a.process.send_signal(signal.SIGSTOP)
        b.says(f"all connected switches hold build {load(then).identity}")
        until(b.complete, "b has finished")
        before = [dump(switches, v) for v in range(SWITCHES)]
        until(lambda: all_have(switches, then), "all have it")
        a.process.send_signal(signal.SIGCONT)
        a.says("a no longer leads and restarts")
        until(lambda: a.leading().get("leader") == "b", "a follows")
        assert [dump(switches, v) for v in range(SWITCHES)] == before
        b.process.send_signal(signal.SIGTERM)
        assert b.process.wait(20) == 0
        until(a.leads, "a leads again, with no lease to wait for", 3)


@pytest.mark.long
def test_a_sighup_loads_no_build_that_the_folder_of_a_new_leader_had(tmp_path, switches):
    """The fabric went back to the build before the last `apply`, when a token was withdrawn."""
    first, then = two_builds(tmp_path)
    with group(tmp_path, first) as (_, a, b):
        join(switches.vsctl, BRIDGES, a, b)
        until(a.complete, "the fabric is a's")
        code, text = a.ask("apply", then, "--token-file", a.tokens, "--to")
        assert code == 0, text
        a.process.send_signal(signal.SIGTERM)
        assert a.process.wait(20) == 0
        until(b.complete, "b leads")
        b.process.send_signal(signal.SIGHUP)
        b.says("nothing is loaded: required a new build in the folder")
        assert all_have(switches, then)
        b.load(first)  # the same build, but now somebody has put it there
        b.says(f"all connected switches hold build {load(first).identity}")


@pytest.mark.long
def test_a_new_leader_keeps_the_build_of_another_and_can_undo_it(tmp_path, switches):
    """Without a store it loaded its folder's old build on all at once, and undo gave 400."""
    first, then = two_builds(tmp_path)
    with group(tmp_path, first) as (etcd, a, b):
        join(switches.vsctl, BRIDGES, a, b)
        until(a.complete, "the fabric is a's")
        code, text = a.ask("apply", then, "--token-file", a.tokens, "--to")
        assert code == 0, text
        copies = b.build.with_name(".build.history")
        both = {load(build).identity for build in (first, then)}
        until(lambda: both <= {file.name for file in copies.glob("*")}, "b has copies")
        a.process.send_signal(signal.SIGTERM)
        assert a.process.wait(20) == 0
        until(b.complete, "b leads")
        before = [dump(switches, v) for v in range(SWITCHES)]
        assert all_have(switches, then)
        etcd.lose_data()
        b.says("b no longer leads and restarts")
        b.says(f"has build {load(then).identity}: {SWITCHES} of {SWITCHES} switches hold it")
        until(b.complete, "b leads again")
        assert [dump(switches, v) for v in range(SWITCHES)] == before
        code, text = b.ask("apply", "--undo", "--token-file", b.tokens, "--to")
        assert code == 0, text
        assert all_have(switches, first)


@pytest.mark.long
def test_a_build_whose_move_was_refused_or_undone_is_new_at_the_next_sighup(tmp_path, switches):
    """The first SIGHUP used it up: `which was there when it was read last`."""
    first, then = two_builds(tmp_path)
    with group(tmp_path, first) as (_, a, _):
        join(switches.vsctl, BRIDGES, a)
        until(a.complete, "the fabric is a's")
        token = ("--token-file", a.tokens)
        code, text = a.ask("apply", then, *token, "--confirm-within", "10m", "--to")
        assert code == 0, text
        a.load(first)
        a.says(f"build {load(then).identity} on trial; confirm it, or roll it back")
        code, text = a.ask("apply", "--confirm", *token, "--to")
        assert code == 0, text
        full = ("--", "--id=@t", "create", "flow_table", "flow_limit=1")
        tables = [f"flow_tables:{table}=@t" for table in range(4)]
        switches.vsctl("set", "bridge", "s5", *tables, *full)
        a.process.send_signal(signal.SIGHUP)
        a.says(f"build {load(then).identity} stays, the new one cannot be used: n5 refused round")
        switches.vsctl("clear", "bridge", "s5", "flow_tables")
        until(a.complete, "all hold the build of before")
        a.process.send_signal(signal.SIGHUP)
        a.says(f"all connected switches hold build {load(first).identity}")


def test_open_vswitch_refuses_a_deposed_master(tmp_path, switches):
    """A role of an older term, and changes of what is a slave by now: all that the proof needs."""
    first, _ = two_builds(tmp_path)
    program = Encoder(load(first)).program(0, 0)
    with (
        socket.create_server(("127.0.0.1", next(PORTS))) as old,
        socket.create_server(("127.0.0.1", next(PORTS))) as new,
    ):
        targets = [f"tcp:127.0.0.1:{server.getsockname()[1]}" for server in (old, new)]
        bridge = ("set", "bridge", "sy", "datapath_type=netdev", "fail_mode=secure")
        controllers = ("set-controller", "sy", *targets)
        switches.vsctl("add-br", "sy", "--", *bridge, "protocols=OpenFlow13", "--", *controllers)
        one, other = Session(old), Session(new)
        before = dump(switches, "y")
        assert one.says(role_request(ControllerRole.MASTER, 10)) == (MessageType.ROLE_REPLY, None)
        one.socket.sendall(group_and_flow_bytes.opening())
        assert one.says(role_request(ControllerRole.MASTER, 10)) == (MessageType.ROLE_REPLY, None)
        assert other.says(role_request(ControllerRole.MASTER, 11)) == (MessageType.ROLE_REPLY, None)
        for message in (
            group_and_flow_bytes.opening(),
            program.flows[0].tobytes(),
            group_and_flow_bytes.commit(),
        ):
            assert one.says(message) == (MessageType.ERROR, (1, 10))
        assert one.says(role_request(ControllerRole.MASTER, 10)) == (MessageType.ERROR, (11, 0))
        assert one.says(role_request(ControllerRole.SLAVE, 11)) == (MessageType.ROLE_REPLY, None)
        assert dump(switches, "y") == before
        one.socket.close()
        other.socket.close()
    switches.vsctl("del-br", "sy")


class Session:
    """The controller's end of a connection."""

    def __init__(self, server):
        server.settimeout(20)
        self.socket, _ = server.accept()
        self.socket.settimeout(20)
        self.rest = b""
        self.socket.sendall(protocol.message(MessageType.HELLO, 1))

    def says(self, message):
        """The first answer that is not greeting or bundle reply; of an error its type and code."""
        self.socket.sendall(message)
        while True:
            while len(self.rest) < 8 or len(self.rest) < protocol.header(self.rest)[1]:
                data = self.socket.recv(65536)
                assert data, "the switch has left"
                self.rest += data
            kind, length, _ = protocol.header(self.rest)
            answer, self.rest = self.rest[:length], self.rest[length:]
            if kind == MessageType.ERROR:
                return kind, struct.unpack_from("!HH", answer, 8)
            if kind == MessageType.ROLE_REPLY:
                return kind, None
            if kind == MessageType.ECHO_REQUEST:
                self.socket.sendall(messages.echo_reply(answer))
