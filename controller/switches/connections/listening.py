"""The listener for switches: accepts their connections, with TLS or in plain text.

`controller.composition` has the framework listen here (`use_listener`). An `Entrance` keeps the
accepted connections, makes their TLS handshakes, and ends those whose peers do not identify
themselves in time or whose certificates are revoked. All that wait are accepted at once, and then
served in turn (`controller.switches.connections.entry_queue`).
"""

from __future__ import annotations

import _socket
import errno
import resource
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from time import time
from typing import Any

from controller.settings import Address
from controller.switches.connections.ended import is_ended
from controller.switches.connections.entry_queue import EntryQueue
from controller.switches.connections.tls_files import TlsFiles, handshake_fault
from controller.switches.events import Kind, PeerMisnamed, PeerRejected, UnnamedPeer
from controller.switches.framework import Framework
from controller.switches.peers import HalfOpen, RejectedPeers
from inventory.problems import InputError

BACKLOG = 4096
"""Connections that may wait to be accepted: all switches of a fabric connect at once."""
ACCEPTED_AT_ONCE = 32
"""Most connections that are accepted before other work goes on: some milliseconds."""
HELLO_PATIENCE = 10.0
"""Most seconds of a TLS handshake; then a peer has as many seconds to identify itself. Without TLS
there is no handshake."""
EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of accept that pass when other connections end."""
EXHAUSTED_PAUSE = 0.1
"""Seconds until the next attempt to accept after such an error."""
MAPPED = "::ffff:"
"""What is in front of an address of IPv4 at a socket of IPv6 (RFC 4291, §2.5.5.2)."""
OTHER_FILES = 128
"""Open files besides connections of switches: HTTP clients, the store, logs, what Python opens."""
LEAST_HALF_OPEN, MOST_HALF_OPEN = 64, 1024
"""Least and most room for half-open connections beyond one for each switch."""


class Entrance:
    """The connections that were accepted, from the first byte to the last.

    Args:
        half_open_room: how many of them may be half-open.
        tls: the files of TLS; None for plain text.
        rejected: counts the peers that are rejected.
        listening_clock: see `controller.switches.listening_clock.ListeningClock`.
        follow: requires a green thread of this name (`Watchdog.follow`).
    """

    def __init__(
        self,
        half_open_room: int,
        tls: TlsFiles | None,
        rejected: RejectedPeers,
        listening_clock: Callable[[], float],
        follow: Callable[[str, Any], None] = lambda *_: None,
    ) -> None:
        self.tls, self._rejected, self._follow = tls, rejected, follow
        self._half_open = HalfOpen(half_open_room, listening_clock)
        """The connections whose peers have not identified themselves."""
        self._own, self._others = EntryQueue(), EntryQueue()
        """The accepted connections that wait to be served: those from hosts of the fabric's own
        switches, and all others. Neither queue waits for the other."""
        self._sockets: dict[Any, Any] = {}
        """The socket of each connection, by its address."""
        self._with_thread: set[Any] = set()
        """The addresses of the connections that a thread serves."""
        self._certificates: dict[Any, Any] = {}
        """The certificate of each peer, by its address."""

    def accepted(self, sock: Any, address: Any) -> None:
        """Add a connection that was accepted; a half-open one may be ended for it."""
        self._leave_queues(address)  # a dead connection from this address may still be queued
        self._sockets[address] = sock
        of_own_host = self._rejected.is_own(address[0])
        (self._own if of_own_host else self._others).add(address)
        oldest = self._half_open.enter(address, is_preferred=of_own_host)
        if oldest is not None:
            self._end(oldest, UnnamedPeer, "too many connections; the oldest gave way")

    def identified(self, address: Any, of_build: bool) -> None:
        """Note that a peer has sent its datapath id.

        A switch of the build is no half-open connection any more. Another peer has no time limit
        any more, but may still be ended to make room.
        """
        if of_build:
            self._half_open.leave(address)
        else:
            self._half_open.exempt(address)

    def nodes(self, address: Any) -> frozenset[str] | None:
        """The nodes that a peer's certificate names; None without TLS."""
        certificate = self._certificates.get(address)
        if self.tls is None:
            return None
        return self.tls.nodes(certificate or {})

    def tick(self) -> None:
        """End the connections whose peers have not identified themselves in time."""
        # With TLS the handshake comes first. It has the same limit, and is not what is reported.
        patience = 2 * HELLO_PATIENCE if self.tls else HELLO_PATIENCE
        for address in self._half_open.late(patience):
            self._end(address, UnnamedPeer, f"it was silent for {HELLO_PATIENCE:.0f} s")

    def end_revoked(self) -> None:
        """End connections whose certificates have been revoked."""
        if self.tls is None:
            return
        for address, certificate in list(self._certificates.items()):
            if self.tls.has_revoked(certificate, time()):
                # Operators watch event `misnamed` for all certificates that a switch may not use:
                # those of other switches, and revoked ones.
                self._end(address, PeerMisnamed, "its certificate was revoked")

    def _end(self, address: Any, kind: Kind, reason: str) -> None:
        """End a connection, and report why."""
        self._half_open.leave(address)
        self._leave_queues(address)
        self._rejected.add(kind, str(address[0]), reason)
        sock = self._sockets.pop(address, None)
        if address in self._with_thread:
            shut_down(sock)  # its thread wakes and ends; killing it would let all others run first
        elif sock is not None:
            sock.close()

    def _leave_queues(self, address: Any) -> None:
        """Remove a connection from the queue in which it waits, if it does."""
        self._own.discard(address)
        self._others.discard(address)

    def _was_ended(self, sock: Any, address: Any) -> bool:
        """Whether `_end` has ended this connection; another may have come from its address."""
        return self._sockets.get(address) is not sock

    def serve(self, handle: Callable[[Any, Any], None]) -> None:
        """Serve the accepted connections in turn, for ever; returns at once.

        Args:
            handle: called with each connection, and its address, after its TLS handshake. Returns
                when it has ended.
        """
        import eventlet

        queues = {"serving switches that connect": self._own, "serving strangers": self._others}
        for name, queue in queues.items():
            self._follow(name, eventlet.spawn(self._serve_queue, queue, handle))

    def _serve_queue(self, queue: EntryQueue, handle: Callable[[Any, Any], None]) -> None:
        """Begin to serve the connections of a queue, each in a thread of its own."""
        import eventlet

        while True:
            address = queue.take()
            eventlet.spawn(self._serve_one, self._sockets[address], address, queue, handle)
            queue.wait_for_turn()  # so that handshakes that have begun go on first

    def _serve_one(
        self, sock: Any, address: Any, queue: EntryQueue, handle: Callable[[Any, Any], None]
    ) -> None:
        """Serve a connection until it ends, after its TLS handshake."""
        from eventlet.green.ssl import GreenSSLSocket

        if self._was_ended(sock, address):
            return
        self._with_thread.add(address)
        certificate: Mapping[str, Any] | None = None
        try:
            if self.tls is not None:
                sock = GreenSSLSocket(
                    sock,
                    server_side=True,
                    do_handshake_on_connect=False,
                    _context=self.tls.switches,
                )
                self._sockets[address] = sock
                # Not in the constructor: a handshake that fails would leave the socket open.
                self._make_handshake(sock, address, queue)
                shown = sock.getpeercert() or {}
                if fault := self.tls.fault(shown, time()):
                    raise ConnectionAbortedError(fault)
                certificate = self._certificates[address] = shown
                self.tls.add_connection(certificate)
        except OSError as error:  # ssl.SSLError, timeouts and resets are
            reason = handshake_fault(error)
            if not self._was_ended(sock, address):  # else that was reported
                self._rejected.add(PeerRejected, str(address[0]), reason)
        else:
            handle(sock, address)
        finally:
            sock.close()
            if certificate and self.tls:
                self.tls.remove_connection(certificate)
            if self._sockets.get(address) in (sock, None):  # no other has come from its address
                self._half_open.leave(address)
                self._with_thread.discard(address)
                self._sockets.pop(address, None)
                self._certificates.pop(address, None)

    def _make_handshake(self, sock: Any, address: Any, queue: EntryQueue) -> None:
        """Make the TLS handshake of a connection, one step in each turn of its queue.

        Raises:
            OSError: it failed, or the connection was ended.
        """
        from eventlet.hubs import trampoline

        sock.setblocking(False)
        is_complete = False
        while not is_complete:
            late = TimeoutError("timed out")
            trampoline(sock, read=True, timeout=HELLO_PATIENCE, timeout_exc=late)
            with queue.step():
                if self._was_ended(sock, address):
                    raise ConnectionAbortedError(errno.ECONNABORTED, "it gave way meanwhile")
                with suppress(ssl.SSLWantReadError):
                    sock.do_handshake()
                    is_complete = True
        sock.setblocking(True)


def raise_file_limit(switches: int) -> int:
    """Raise this process's limit of open files to its hard limit, for connections of switches.

    Every switch has room for two connections: one that is dead and one with which it returns.

    Returns:
        How many half-open connections there may be.

    Raises:
        InputError: the hard limit is too low.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * switches + OTHER_FILES + LEAST_HALF_OPEN
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise InputError.of(
            required=f"at least {needed:,} open files for {switches:,} switches",
            given=f"a hard limit of {hard:,}",
            todo=f"start it with: ulimit -Hn {needed}; or LimitNOFILE={needed} in systemd's unit",
        )
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard == resource.RLIM_INFINITY:
        return switches + MOST_HALF_OPEN
    return min(switches + MOST_HALF_OPEN, hard - switches - OTHER_FILES)


def use_listener(framework: Framework, entrance: Entrance, address: Address) -> None:
    """Make the framework listen at this address with `Listener`; called before its apps start.

    The framework's own server forgets its certificates after the first connection (Ryu 4.34), lets
    50 connections wait, ends when no more files can be opened, and would not report that the
    address cannot be had.

    Raises:
        InputError: the address cannot be had.
    """
    import eventlet

    server = listen_at(address, BACKLOG)

    class Listener:
        """Replaces the framework's StreamServer; the entrance makes TLS handshakes."""

        def __init__(self, _: object, handle: Callable[[Any, Any], None], **__: Any) -> None:
            self.handle = handle

        def serve_forever(self) -> None:
            """Accept connections for ever."""
            entrance.serve(self.handle)
            for number in count(1):
                sock, peer = accept(server)
                if is_ended(sock.fd):
                    sock.close()
                else:
                    entrance.accepted(sock, peer)
                # While others wait in the backlog, accept returns at once: nothing else would run.
                if number % ACCEPTED_AT_ONCE == 0:
                    eventlet.sleep(0)

    framework.controller.StreamServer = Listener  # type: ignore[attr-defined]


def listen_at(address: Address, backlog: int) -> Any:
    """A socket that listens at an address.

    Its port is not shared: else some switches would connect to one controller, some to another.

    Args:
        address: to listen at.
        backlog: connections that may wait to be accepted.

    Raises:
        InputError: the port is in use, or the address is not this machine's.
    """
    from eventlet.green import socket as green

    sock = green.socket(green.AF_INET6 if ":" in address.host else green.AF_INET)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((address.host, address.port))
        sock.listen(backlog)
    except OSError as error:
        raise InputError.of(
            key=address.option,
            required="an address of this machine with a free port",
            given=f"{address} ({error.strerror or error})",
            todo=f"stop what listens there, or give another {address.option}",
        ) from error
    return sock


def shut_down(sock: Any, how: int = socket.SHUT_RDWR) -> None:
    """Shut a connection down; a thread that waits for it wakes.

    An `SSLSocket` that is shut down by its own method raises ValueError in the thread that reads.
    """
    with suppress(OSError):
        _socket.socket.shutdown(getattr(sock, "fd", sock), how)


def accept(server: Any) -> tuple[Any, Any]:
    """Accept the next connection, however long it takes.

    Returns:
        The socket and the peer's address. A peer of IPv4 has its own address, also at a socket of
        IPv6, which says `::ffff:192.0.2.1`: it may be the management address of a switch.
    """
    import eventlet

    while True:
        try:
            sock, address = server.accept()
        except OSError as error:
            if error.errno in EXHAUSTED:
                eventlet.sleep(EXHAUSTED_PAUSE)
            elif error.errno != errno.ECONNABORTED:
                raise
        else:
            return sock, (address[0].removeprefix(MAPPED), *address[1:])
