"""Who is let in: half-open connections, rejected peers, the inbox, the limit of open files."""

import gc
import resource
import socket
import ssl
import struct
from pathlib import Path
from time import monotonic
from types import SimpleNamespace

import pytest
import trustme

from controller.app import MOST_CONNECTION_BYTES, MOST_WAITING_BYTES, Inbox
from controller.switches.connections import listening
from controller.switches.connections.listening import Entrance
from controller.switches.events import EVENTS_KEPT, PeerRejected, TokenRefused
from controller.switches.listening_clock import ListeningClock
from controller.switches.peers import (
    MOST_REASONS,
    REPORT_PERIOD,
    HalfOpen,
    RejectedPeers,
    TokenBucket,
)
from inventory.problems import InputError


@pytest.fixture
def now():
    return [0.0]


def test_the_host_with_most_connections_loses_its_oldest(now):
    room = HalfOpen(4, lambda: now[0])
    assert room.enter(("other", 1)) is None
    assert [room.enter(("flood", port)) for port in (1, 2, 3)] == [None] * 3
    assert room.enter(("flood", 4)) == ("flood", 1)
    assert room.enter(("other", 2)) == ("flood", 2)
    now[0] = 1.0
    assert len(room.late(0)) == 4


def test_ten_thousand_idle_connections_leave_room_for_switches(now):
    room = HalfOpen(100, lambda: now[0])
    for port in range(10_000):
        room.enter(("10.0.0.9", port))
        if port % 100 == 0:
            room.enter(("10.0.0.1", port))
            room.leave(("10.0.0.1", port))
    now[0] = 10.5
    assert len(room.late(10)) == 100


def test_who_waits_is_never_late_but_gives_way(now):
    room = HalfOpen(2, lambda: now[0])
    room.enter(("a", 1))
    room.exempt(("a", 1))
    now[0] = 1e6
    assert room.late(10) == []
    room.enter(("a", 2))
    assert room.enter(("a", 3)) == ("a", 1)


def test_messages_of_strangers_are_allowed_by_the_second(now):
    bucket = TokenBucket(lambda: now[0], 100.0)
    assert [bucket.take(40) for _ in range(4)] == [True, True, False, False]
    now[0] += 0.5
    assert [bucket.take(40) for _ in range(2)] == [True, False]
    now[0] += 60.0
    assert [bucket.take(40) for _ in range(3)] == [True, True, False]


@pytest.fixture
def told():
    return []


@pytest.fixture
def rejected(told, now):
    return RejectedPeers(told.append, lambda: now[0])


def test_every_failure_is_counted_and_told_once_a_minute(rejected, told, now):
    for _ in range(500):
        rejected.add(PeerRejected, "192.0.2.1", "certificate required")
    rejected.add(PeerRejected, "192.0.2.1", "unknown authority")
    assert [str(event) for event in told] == [
        "a peer on 192.0.2.1 failed the TLS handshake: certificate required",
        "a peer on 192.0.2.1 failed the TLS handshake: unknown authority",
    ]
    now[0] = REPORT_PERIOD
    rejected.tick()
    assert rejected.counts.total() == 501
    assert [(event.reason, event.times) for event in told[2:]] == [("certificate required", 499)]
    now[0] = 3 * REPORT_PERIOD
    rejected.tick()
    rejected.tick()
    assert len(told) == 3


def test_many_hosts_do_not_fill_memory_or_the_log(rejected, told):
    for number in range(10 * MOST_REASONS):
        rejected.add(PeerRejected, f"2001:db8::{number:x}", "timed out")
    assert len(told) == MOST_REASONS + 1 < EVENTS_KEPT / 9, "older events stay"
    assert rejected.counts.total() == 10 * MOST_REASONS


def test_many_hosts_hide_no_other_reason_and_no_other_kind(rejected, told):
    """Of an expired certificate only "too many hosts and reasons to list" was said."""
    for number in range(2 * MOST_REASONS):
        rejected.add(TokenRefused, f"2001:db8::{number:x}", "a token that is not known")
    rejected.add(PeerRejected, "192.0.2.1", "certificate has expired")
    assert (told[-1].type, told[-1].host) == (PeerRejected, "192.0.2.1")
    for number in range(2 * MOST_REASONS):
        rejected.add(PeerRejected, f"2001:db8::{number:x}", "wrong version number")
    rejected.add(PeerRejected, "192.0.2.2", "unknown authority")
    assert (told[-1].host, told[-1].reason) == ("other hosts", "unknown authority")
    rejected.is_own = {"192.0.2.9"}.__contains__
    rejected.add(PeerRejected, "192.0.2.9", "certificate has expired")
    assert (told[-1].host, told[-1].reason) == ("192.0.2.9", "certificate has expired")
    for number in range(2 * MOST_REASONS):
        rejected.add(PeerRejected, "192.0.2.3", f"name {number}")
    assert told[-1].reason == "too many hosts and reasons to list"


class Hub:
    @staticmethod
    def sleep(_):
        """A slow machine takes longer than a slice."""

    class Event:
        turns = iter(())

        def is_set(self):
            return False

        def set(self):
            self.turns = iter([1])

        def wait(self):
            next(self.turns)

        def clear(self):
            pass


def controller(clock, **parts):
    fabric = SimpleNamespace(clock=clock, **parts)
    return SimpleNamespace(fabric=fabric, member=None, entrance=None)


def test_one_connection_does_not_fill_the_inbox():
    inbox = Inbox(Hub, controller(monotonic))
    parts = 0
    while not inbox.must_pause("flood"):
        inbox.put("flood", bytes(1 << 20))
        parts += 1
    assert parts << 20 <= MOST_CONNECTION_BYTES + (1 << 20) < MOST_WAITING_BYTES
    assert not inbox.must_pause("switch")


@pytest.fixture
def limits(monkeypatch):
    """The limits of open files as they would be."""
    found = {"now": (256, 4096)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: found["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: found.update(now=both))
    return found


def test_too_few_files_are_refused_with_the_number_needed(limits):
    limits["now"] = (1024, 1024)
    with pytest.raises(
        InputError, match="at least 2,178 open files for 993 switches, given a hard"
    ):
        listening.half_open_room(993)
    assert listening.half_open_room(13) > listening.LEAST_HALF_OPEN


def test_a_connection_that_gives_way_before_its_thread_has_begun_is_closed(rejected):
    """A burst is accepted in one go, before any of the threads runs."""
    eventlet = pytest.importorskip("eventlet")
    entrance, over = Entrance(2, None, rejected, rejected.clock), eventlet.event.Event()

    def wait(*_):
        over.wait()

    ends = [socket.socketpair() for _ in range(6)]
    for number, (here, _) in enumerate(ends):
        entrance.accepted(here, ("192.0.2.1", number))
        eventlet.spawn(entrance.serve, here, ("192.0.2.1", number), wait)
    assert [here.fileno() == -1 for here, _ in ends] == [True] * 4 + [False] * 2
    over.send()
    eventlet.sleep(0)
    eventlet.sleep(0)
    assert [here.fileno() for here, _ in ends] == [-1] * 6
    for _, there in ends:
        there.close()


def test_a_flood_of_connections_keeps_no_repair_waiting():
    """A thousand connections a second kept the backlog filled: for 147 s nothing else ran."""
    eventlet = pytest.importorskip("eventlet")
    order, framework = [], SimpleNamespace(controller=SimpleNamespace())
    entrance = SimpleNamespace(accepted=lambda *_: order.append("accepted"), serve=lambda *_: None)
    server = eventlet.listen(("127.0.0.1", 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listening, "listen_at", lambda *_: server)
        listening.use_listener(framework, entrance, None)
    clients = [socket.create_connection(server.getsockname()) for _ in range(20)]
    serving = eventlet.spawn(framework.controller.StreamServer(None, None).serve_forever)
    while order.count("accepted") < len(clients):
        order.append("tick")
        eventlet.sleep(0)
    serving.kill()
    assert order.count("tick") >= len(clients) / 2
    for sock in (*clients, server):
        sock.close()


def test_connections_that_are_gone_are_not_served():
    """A switch that reconnected waited 6.6 s behind those of a stranger who resets them."""
    eventlet = pytest.importorskip("eventlet")
    accepted, framework = [], SimpleNamespace(controller=SimpleNamespace())
    entrance = SimpleNamespace(accepted=lambda _, peer: accepted.append(peer), serve=lambda *_: 0)
    server = eventlet.listen(("127.0.0.1", 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listening, "listen_at", lambda *_: server)
        listening.use_listener(framework, entrance, None)
    gone, reset, hello, switch, sender = (
        socket.create_connection(server.getsockname()) for _ in range(5)
    )
    gone.close()
    hello.sendall(b"hello")
    for sock in (reset, hello):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    sender.sendall(b"hello")
    serving = eventlet.spawn(framework.controller.StreamServer(None, None).serve_forever)
    for _ in range(20):
        eventlet.sleep(0)
    serving.kill()
    assert accepted == [switch.getsockname(), sender.getsockname()]
    for sock in (switch, sender, server):
        sock.close()


def test_a_connection_from_the_address_of_one_that_was_ended_is_another(rejected):
    """A thread served the closed socket of the first, or forgot the second when it ended."""
    eventlet = pytest.importorskip("eventlet")
    entrance = Entrance(2, None, rejected, rejected.clock)
    first, second, *others = (pair[0] for pair in (socket.socketpair() for _ in range(4)))
    address, served = ("192.0.2.1", 1), []
    entrance.accepted(first, address)
    for number, other in enumerate(others):
        entrance.accepted(other, ("192.0.2.1", 2 + number))  # the first gives way
    assert first.fileno() == -1
    entrance.accepted(second, address)
    for sock in (first, second):
        eventlet.spawn(entrance.serve, sock, address, lambda sock, _: served.append(sock))
    eventlet.sleep(0)
    assert served == [second]


def test_nobody_is_silent_while_we_do_not_listen(now):
    ended = []
    rejected = RejectedPeers(ended.append, lambda: now[0])
    heard = ListeningClock(lambda: now[0])
    heard.update(None)
    entrance = Entrance(2, None, rejected, heard)
    entrance.accepted(SimpleNamespace(close=lambda: None), ("192.0.2.1", 1))
    now[0] = 60.0  # one long step of ours
    heard.update(None)
    entrance.tick()
    rejected.tick()
    assert ended == []
    for _ in range(10):
        now[0] += 1.0
        heard.update(None)
        entrance.tick()
    rejected.tick()
    assert [event.reason for event in ended] == ["it was silent for 10 s"]


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_handshake_that_is_broken_off_leaves_no_open_file(rejected, now):
    """At once, and not only when cycles of objects are collected."""
    eventlet = pytest.importorskip("eventlet")
    authority = trustme.CA()
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("ours.example").configure_cert(ours)
    tls = SimpleNamespace(switches=ours)
    entrance = Entrance(2, tls, rejected, rejected.clock)
    server = eventlet.listen(("127.0.0.1", 0))
    clients = [socket.create_connection(server.getsockname()) for _ in range(8)]
    gc.collect()
    gc.disable()
    try:
        before = open_files()
        for _ in clients:
            here, address = server.accept()
            entrance.accepted(here, address)
            eventlet.spawn(entrance.serve, here, address, None)
            del here
            eventlet.sleep(0)
            eventlet.sleep(0)
        assert open_files() <= before + 2
    finally:
        gc.enable()
        for peer in (*clients, server):
            peer.close()
    now[0] += 1e6
    entrance.tick()
    eventlet.sleep(0)
