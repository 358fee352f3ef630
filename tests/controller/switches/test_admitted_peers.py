"""Who is let in: half-open connections, rejected peers, the inbox, the limit of open files."""

import gc
import resource
import select
import socket
import ssl
import struct
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import monotonic
from types import SimpleNamespace

import numpy as np
import pytest
import trustme

from controller.app import MOST_CONNECTION_BYTES, MOST_WAITING_BYTES, Inbox
from controller.switches.connections import listening
from controller.switches.connections.entry_queue import EntryQueue
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

MOST_TURNS = 10_000
"""Turns of the loop after which a test fails."""


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


def test_the_busiest_host_is_the_one_that_a_search_finds(now):
    """Its connections are counted as they come and go: a search of 700 hosts took 60 µs."""
    random, most = np.random.default_rng(7), 20
    room, connections = HalfOpen(most, lambda: now[0]), []
    for port in range(3000):
        if connections and random.random() < 0.3:
            room.leave(connections.pop(random.integers(len(connections))))
        host = "aaabbcdefg"[random.integers(10)]
        connections.append((host, port))
        ended = room.enter((host, port), is_preferred=host in "ab")
        if len(connections) <= most:
            assert ended is None
        else:
            counts = Counter(host for host, _ in connections)
            preferred = {host: counts.pop(host, 0) for host in "ab"}
            if sum(preferred.values()) > most / 2 and max(preferred.values()) > max(
                counts.values(), default=0
            ):
                counts = preferred
            assert counts[ended[0]] == max(counts.values())
            assert ended == next(address for address in connections if address[0] == ended[0])
            connections.remove(ended)
        assert len(room.late(-1)) == len(connections)


def test_one_preferred_host_does_not_keep_all_others_out(now):
    """With 64 idle connections of a machine with a token every other one was ended at once."""
    room = HalfOpen(10, lambda: now[0])
    for port in range(10):
        room.enter(("preferred", port), is_preferred=True)
    assert room.enter(("other", 1)) == ("preferred", 0)
    for number in range(4):
        assert room.enter((f"switch {number}", 1), is_preferred=True)[0] == "preferred"
    assert room.enter(("other", 2)) == ("preferred", 5)


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
        listening.raise_file_limit(993)
    assert listening.raise_file_limit(13) > listening.LEAST_HALF_OPEN


def test_a_connection_that_gives_way_before_its_thread_has_begun_is_closed(rejected):
    """A burst is accepted in one go, before any of the threads runs."""
    eventlet = pytest.importorskip("eventlet")
    entrance, over = Entrance(2, None, rejected, rejected.clock), eventlet.event.Event()

    def wait(*_):
        over.wait()

    ends = [socket.socketpair() for _ in range(6)]
    for number, (here, _) in enumerate(ends):
        entrance.accepted(here, ("192.0.2.1", number))
    entrance.serve(wait)
    assert [here.fileno() == -1 for here, _ in ends] == [True] * 4 + [False] * 2
    over.send()
    for _ in range(6):
        eventlet.sleep(0)
    assert [here.fileno() for here, _ in ends] == [-1] * 6
    for _, there in ends:
        there.close()


@pytest.fixture
def listener():
    """A function that listens for an entrance; returns the listener and its socket."""
    eventlet, opened = pytest.importorskip("eventlet"), []

    def listen(entrance):
        framework = SimpleNamespace(controller=SimpleNamespace())
        server = eventlet.listen(("127.0.0.1", 0))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(listening, "listen_at", lambda *_: server)
            listening.use_listener(framework, entrance, None)
        serving = eventlet.spawn(framework.controller.StreamServer(None, None).serve_forever)
        opened.append((serving, server))
        return server.getsockname()

    yield listen
    for serving, server in opened:
        serving.kill()
        server.close()


def test_a_flood_of_connections_keeps_no_repair_waiting(listener, monkeypatch):
    """A thousand connections a second kept the backlog filled: for 147 s nothing else ran."""
    eventlet = pytest.importorskip("eventlet")
    monkeypatch.setattr(listening, "ACCEPTED_AT_ONCE", 5)
    order = []
    address = listener(
        SimpleNamespace(accepted=lambda *_: order.append("accepted"), serve=lambda _: None)
    )
    clients = [socket.create_connection(address) for _ in range(20)]
    while order.count("accepted") < len(clients):
        assert len(order) < MOST_TURNS
        order.append("tick")
        eventlet.sleep(0)
    assert "".join(word[0] for word in order) == "t" + "aaaaat" * 3 + "aaaaa"
    for sock in clients:
        sock.close()


def entrance_of(rejected, own="192.0.2.1", tls=None, room=1000):
    rejected.is_own = {own}.__contains__
    return Entrance(room, tls, rejected, rejected.clock)


def test_a_switch_that_reconnects_waits_for_no_stranger(rejected):
    """With 95 handshakes of strangers a second it was not back in 40 s."""
    eventlet = pytest.importorskip("eventlet")
    entrance, served = entrance_of(rejected), []
    strangers = [(f"198.51.100.{number}", 7) for number in range(50)]
    for address in (*strangers, ("192.0.2.1", 7)):
        entrance.accepted(SimpleNamespace(close=lambda: None), address)
    entrance.serve(lambda _, address: served.append(address))
    turns = 0
    while len(served) < 51:
        assert turns < MOST_TURNS
        turns += 1
        eventlet.sleep(0)
    assert ("192.0.2.1", 7) in served[:2]
    assert turns >= len(strangers)  # so that repairs go on between two


def test_hosts_take_turns_to_be_served():
    """A switch whose host is not known yet waits for one connection of each other host."""
    pytest.importorskip("eventlet")
    queue = EntryQueue()
    for port in range(4):
        queue.add(("flood", port))
    queue.add(("switch", 1))
    queue.discard(("flood", 1))
    queue.discard(("flood", 9))
    order = [queue.take() for _ in range(4)]
    assert order == [("flood", 0), ("switch", 1), ("flood", 2), ("flood", 3)]
    queue.add(("flood", 5))
    queue.discard(("flood", 5))
    queue.add(("switch", 2))
    assert queue.take() == ("switch", 2)


def test_a_flood_that_has_passed_costs_nothing(monkeypatch):
    """A count of arrivals was worked off at once: .35 s for a million that had given way."""
    eventlet = pytest.importorskip("eventlet")
    acquired = []

    class Counted(eventlet.semaphore.Semaphore):
        def acquire(self, *words, **options):
            acquired.append(self)
            return super().acquire(*words, **options)

    monkeypatch.setattr(eventlet.semaphore, "Semaphore", Counted)
    queue = EntryQueue()
    for port in range(1000):
        queue.add(("flood", port))
        queue.discard(("flood", port))
    taking = eventlet.spawn(queue.take)
    eventlet.sleep(0)
    queue.add(("switch", 1))
    assert taking.wait() == ("switch", 1)
    assert len(acquired) <= 3


def test_an_address_that_comes_again_waits_once(rejected):
    """Its host had become a switch's meanwhile: the other queue was never served again."""
    eventlet = pytest.importorskip("eventlet")
    entrance, served = entrance_of(rejected), []

    def accept(*address):
        entrance.accepted(SimpleNamespace(close=lambda: None), address)

    accept("198.51.100.1", 7)
    accept("198.51.100.9", 7)
    rejected.is_own = {"198.51.100.9"}.__contains__
    accept("198.51.100.9", 7)
    entrance.serve(lambda _, address: served.append(address[0]))
    for _ in range(6):
        eventlet.sleep(0)
    accept("198.51.100.2", 7)
    for _ in range(6):
        eventlet.sleep(0)
    assert sorted(served) == ["198.51.100.1", "198.51.100.2", "198.51.100.9"]


def test_hosts_of_the_fabric_keep_their_half_open_connections(now):
    """Strangers from more addresses than there is room for ended those of switches."""
    room = HalfOpen(4, lambda: now[0])
    for port in (1, 2):
        room.enter(("switch", port), is_preferred=True)
    ended = [room.enter((f"stranger {number}", 1)) for number in range(5)]
    assert ended == [None, None, *((f"stranger {number}", 1) for number in range(3))]
    room.leave(("switch", 1))
    room.leave(("switch", 2))
    assert [room.enter(("switch", port), is_preferred=True) for port in (3, 4)] == [None, None]
    assert room.enter(("stranger 9", 1)) == ("stranger 3", 1)


def handshakes(authority, entrance, clients):
    """Have an entrance serve clients whose first message of TLS has arrived.

    Returns:
        How many turns of the loop each client's answer took.
    """
    eventlet = pytest.importorskip("eventlet")
    server = eventlet.listen(("127.0.0.1", 0))
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(theirs)
    opened = []
    for host in clients:
        there = socket.create_connection(server.getsockname())
        here, (_, port) = server.accept()
        there.setblocking(False)
        sock = theirs.wrap_socket(
            there, server_hostname="ours.example", do_handshake_on_connect=False
        )
        with suppress(ssl.SSLWantReadError):
            sock.do_handshake()
        opened.append(sock)
        entrance.accepted(here, (host, port))
    entrance.serve(lambda *_: None)
    turns, answered = 0, {}
    while len(answered) < len(opened):
        assert turns < MOST_TURNS
        eventlet.sleep(0)
        turns += 1
        for number, sock in enumerate(opened):
            if number not in answered and select.select([sock], [], [], 0)[0]:
                answered[number] = turns
    for sock in (*opened, server):
        sock.close()
    return [answered[number] for number in range(len(opened))]


def test_one_step_of_a_handshake_in_each_turn_of_the_loop(rejected):
    """A thousand strangers who send their first message at once held the loop for seconds."""
    authority = trustme.CA()
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("ours.example").configure_cert(ours)
    entrance = entrance_of(rejected, tls=SimpleNamespace(switches=ours))
    *strangers, switch = handshakes(
        authority, entrance, [*(f"198.51.100.{number}" for number in range(20)), "192.0.2.1"]
    )
    assert len(set(strangers)) == len(strangers)
    assert switch <= sorted(strangers)[1]


def test_connections_that_are_gone_are_not_served(listener):
    """A switch that reconnected waited 6.6 s behind those of a stranger who resets them."""
    eventlet = pytest.importorskip("eventlet")
    accepted = []
    address = listener(
        SimpleNamespace(accepted=lambda _, peer: accepted.append(peer), serve=lambda _: None)
    )
    gone, reset, hello, switch, sender = (socket.create_connection(address) for _ in range(5))
    gone.close()
    hello.sendall(b"hello")
    for sock in (reset, hello):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    sender.sendall(b"hello")
    for _ in range(20):
        eventlet.sleep(0)
    assert accepted == [switch.getsockname(), sender.getsockname()]
    for sock in (switch, sender):
        sock.close()


def test_a_peer_of_ipv4_has_its_own_address_at_a_socket_of_ipv6():
    """It was no host of the fabric, though the inventory had its management address."""
    eventlet = pytest.importorskip("eventlet")
    server = eventlet.listen(("::", 0), socket.AF_INET6)
    client = socket.create_connection(("127.0.0.1", server.getsockname()[1]))
    accepted, address = listening.accept(server)
    assert address[:2] == client.getsockname()
    for sock in (accepted, client, server):
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
    entrance.serve(lambda sock, _: served.append(sock))
    for _ in range(6):
        eventlet.sleep(0)
    assert served == [others[1], second]


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
        entrance.serve(None)
        for _ in clients:
            here, address = server.accept()
            entrance.accepted(here, address)
            del here
            for _ in range(6):
                eventlet.sleep(0)
        assert open_files() <= before + 2
    finally:
        gc.enable()
        for peer in (*clients, server):
            peer.close()
    now[0] += 1e6
    entrance.tick()
    eventlet.sleep(0)
