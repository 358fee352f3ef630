"""Roles between connections and a fabric, without a network."""

import struct
from types import SimpleNamespace

import pytest

from compilers.targets.openflow import protocol
from compilers.targets.openflow.protocol import MessageType
from controller.cluster.roles import ROLE_RETRY, ControllerRole, Roles, role_request
from controller.openflow.messages import SessionXid


class Fabric:
    def __init__(self):
        self.seen = []
        self.hosts = {}
        self.current = SimpleNamespace(programs=SimpleNamespace(by_datapath_id={1: 0, 2: 1, 3: 2}))

    def report_unknown(self, datapath_id, peer):
        self.seen.append(("unknown", datapath_id, peer))

    def note_host(self, datapath_id, address, _):
        self.hosts[datapath_id] = address

    def connected(self, key, datapath_id, peer="", _=None):
        self.seen.append(("connected", key, datapath_id, peer))

    def received(self, key, message):
        self.seen.append(("received", key, message))

    def closed(self, key):
        self.seen.append(("closed", key))


@pytest.fixture
def world():
    class World:
        def __init__(self):
            self.now, self.fabric, self.sent, self.refused = 0.0, Fabric(), [], []
            self.fabric.clock = lambda: self.now
            self.fabric.tell = lambda event: self.refused.append(int(event.node, 16))
            self.fabric.send = lambda key, _, data: self.sent.append((key, data))
            self.roles = Roles(self.fabric)

        def take(self):
            sent, self.sent = self.sent, []
            return sent

    return World()


def reply(role, term, xid=SessionXid.ROLE):
    return protocol.message(MessageType.ROLE_REPLY, xid, struct.pack("!I4xQ", role, term))


def error(kind, code, quoted=b""):
    return protocol.message(MessageType.ERROR, 9, struct.pack("!HH", kind, code) + quoted)


def test_the_request_is_as_the_standard_has_it():
    """§7.3.9: header, role, 4 bytes of padding, generation id."""
    assert (
        role_request(ControllerRole.MASTER, 0x0102).hex()
        == "04180018ffffff0300000002000000000000000000000102"
    )


def test_a_follower_is_a_slave_and_its_fabric_hears_nothing(world):
    world.roles.connected("a", 1, "1.2.3.4:5")
    assert world.take() == [], "nobody leads yet"
    world.roles.follow(7)
    assert world.take() == [("a", role_request(ControllerRole.SLAVE, 7))]
    world.roles.follow(7)
    world.roles.received("a", reply(ControllerRole.SLAVE, 7))
    world.roles.received("a", protocol.message(MessageType.PORT_STATUS, 0))
    world.roles.connected("b", 2)
    assert world.take() == [("b", role_request(ControllerRole.SLAVE, 7))]
    assert world.fabric.hosts[1] == "1.2.3.4:5", "so that it need not wait among strangers"
    world.roles.closed("a")
    assert world.fabric.seen == []
    assert len(world.roles) == 1


def test_the_fabric_hears_of_a_switch_once_that_says_that_we_are_master(world):
    world.roles.connected("a", 1, "peer")
    world.roles.follow(7)
    world.roles.lead(8)
    assert world.take()[-1] == ("a", role_request(ControllerRole.MASTER, 8))
    for other in (
        reply(ControllerRole.SLAVE, 7),
        reply(ControllerRole.MASTER, 7),
        reply(ControllerRole.SLAVE, 8),
        b"",
    ):
        if other:
            world.roles.received("a", other)
    assert world.fabric.seen == []
    world.roles.received("a", reply(ControllerRole.MASTER, 8))
    world.roles.received("a", reply(ControllerRole.MASTER, 8))
    assert world.fabric.seen == [("connected", "a", 1, "peer")]
    message = protocol.message(MessageType.BARRIER_REPLY, 5)
    world.roles.received("a", message)
    world.roles.closed("a")
    assert world.fabric.seen[1:] == [("received", "a", message), ("closed", "a")]


def test_a_stale_term_is_told_and_tried_again(world):
    world.roles.lead(8)
    world.roles.connected("a", 1)
    world.take()
    stale = protocol.message(MessageType.ERROR, SessionXid.ROLE, struct.pack("!HH", 11, 0))
    for _ in range(2):
        world.roles.received("a", stale)
    assert world.refused == [1], "reported once"
    assert world.fabric.seen == []
    world.roles.tick()
    assert world.take() == []
    world.now += ROLE_RETRY + 0.1
    world.roles.tick()
    assert world.take() == [("a", role_request(ControllerRole.MASTER, 8))]


def test_a_switch_with_another_master_is_cut_off(world):
    world.roles.lead(8)
    world.roles.connected("a", 1)
    world.roles.received("a", reply(ControllerRole.MASTER, 8))
    world.take()
    world.roles.received("a", error(5, 1))
    assert world.take() == [], "any other error is the fabric's"
    world.roles.received("a", error(1, 10))
    assert world.take() == [("a", None)]
    assert [what for what, *_ in world.fabric.seen] == ["connected", "received"]


def test_no_role_is_requested_of_a_switch_of_another_fabric(world):
    """It left its own leader, which could not repair any more: each took it in turn."""
    world.roles.connected("a", 9, "1.2.3.4:5")
    world.roles.follow(7)
    assert (world.take(), world.fabric.seen) == ([], [])
    world.roles.lead(8)
    assert (world.take(), world.fabric.seen) == ([], [("unknown", 9, "1.2.3.4:5")])
    world.fabric.current.programs.by_datapath_id[9] = 3  # of a build that the fabric moves to
    world.roles.tick()
    assert world.take() == [("a", role_request(ControllerRole.MASTER, 8))]


def test_the_end_of_one_connection_ends_no_wait_for_the_role_of_the_other(world):
    """A move left out a switch whose old connection ended before the new one had confirmed."""
    world.roles.lead(8)
    assert not world.fabric.awaits_role({1})
    world.roles.connected("old", 1)
    world.roles.connected("new", 1)
    world.roles.closed("old")
    assert (world.fabric.awaits_role({1}), world.fabric.awaits_role({2})) == (True, False)
    world.roles.received("new", reply(ControllerRole.MASTER, 8))
    assert not world.fabric.awaits_role({1})
    world.roles.connected("late", 1)
    assert not world.fabric.awaits_role({1}), "it takes part by the first one"


def test_a_switch_that_refuses_is_not_waited_for(world):
    world.roles.lead(8)
    world.roles.connected("a", 1)
    world.roles.received(
        "a", protocol.message(MessageType.ERROR, SessionXid.ROLE, struct.pack("!HH", 11, 0))
    )
    assert not world.fabric.awaits_role({1})
