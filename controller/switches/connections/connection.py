"""A connection's socket: the framework's datapath with a receiver and a sender of our own.

The framework reads a few bytes at a time, makes an object of each entry of a reply, and sends
everything through one short queue. Here replies stay bytes, bulk is sent in large chunks, and echo
replies go first. The framework still handles hello, features and messages for other apps.
"""

from __future__ import annotations

import socket
from contextlib import closing
from typing import Any, Protocol

from compilers.targets.openflow.protocol import HEADER, Malformed, MessageType, header
from controller.openflow.messages import SessionXid, datapath_id, echo_reply
from controller.switches.connections.listening import shut_down
from controller.switches.connections.sending import Overflow, SendPriority, SendQueue
from controller.switches.connections.shared_connection import shared
from controller.switches.framework import Framework

RECEIVE_BYTES = 256 * 1024
"""Bytes received at once."""
SEND_BUFFER = 256 * 1024
"""Bytes of the kernel's send buffer for a switch; the rest waits in our queue, in order."""
MOST_HALF_OPEN_BYTES = 64 * 1024
"""Bytes that may wait in our queue for a peer that has not identified itself."""
PAUSE = 0.05
"""Seconds between a receiver's checks whether the inbox has room again."""
MESSAGES_A_TURN = 64
"""Messages handled before other connections are served."""


class Edge(Protocol):
    """The receiver of a connection's messages."""

    def busy(self, connection: Any) -> bool:
        """Whether the inbox, or this connection's part, is full, so that receiving must pause."""

    @property
    def silenced(self) -> bool:
        """Whether sending is forbidden, because another controller leads."""

    def changed(self, connection: Any) -> None:
        """The connection's state is another: its switch has named itself, or it has ended."""

    def received(self, connection: Any, message: bytes) -> None:
        """A message has arrived from an identified switch."""

    def malformed(self, connection: Any, text: str) -> None:
        """The connection is being closed because of malformed data."""

    def bug(self, error: Exception) -> None:
        """The connection is being closed because of a bug of ours."""


def send(datapath: Any, priority: SendPriority, data: bytes | None) -> None:
    """Send whole messages over one of our connections; close it if data is None."""
    if data is None:
        datapath.end()
    else:
        datapath.enqueue(priority, data)


def send_urgent(datapath: Any, data: bytes | None) -> None:
    """Send messages ahead of bulk; close the connection if data is None."""
    send(datapath, SendPriority.URGENT, data)


def use(framework: Framework, edge: Edge, others: bool = False) -> None:
    """Make the framework use our datapath class for every connection it accepts from now on.

    others: whether other apps run beside ours and are to get their events.
    """
    own = _datapath_class(framework, edge)
    own = shared(framework, own, edge) if others else own

    def serve(sock: Any, address: Any) -> None:
        with closing(own(sock, address)) as datapath:
            datapath.serve()

    framework.controller.datapath_connection_factory = serve  # type: ignore[attr-defined]


def _probed(message: bytes) -> bool:
    """Whether an echo reply answers a probe of the session, and not the framework's own."""
    return header(message)[2] == SessionXid.PROBE


def _datapath_class(framework: Framework, edge: Edge) -> Any:
    hub, main = framework.hub, framework.handler.MAIN_DISPATCHER
    dead = framework.handler.DEAD_DISPATCHER
    config = framework.handler.CONFIG_DISPATCHER

    class OwnDatapath(framework.datapath):  # type: ignore[misc, name-defined]
        """A connection with a switch."""

        state: Any  # of the framework's class, as is the queue
        send_q: Any

        def __init__(self, sock: Any, address: Any) -> None:
            self.queue, self.wake = SendQueue(), hub.Event()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            super().__init__(sock, address)

        def set_state(self, state: str) -> None:
            """Tell the edge at once: the framework's queue of events holds up who fills it."""
            if state != self.state:
                self.state = state
                edge.changed(self)

        def enqueue(self, priority: SendPriority, data: bytes) -> None:
            """Queue whole messages; a switch that does not read them is disconnected."""
            if self.send_q is None:
                return
            try:
                if self.id is None and self.queue.waiting() > MOST_HALF_OPEN_BYTES:
                    raise Overflow
                self.queue.put(priority, data)
            except Overflow:
                self.abort("does not read our answers")
                return
            if not self.wake.is_set():
                self.wake.set()

        def abort(self, text: str) -> None:
            """Close the connection because of what its peer did."""
            edge.malformed(self, text)
            self.end()

        def end(self) -> None:
            """Close both directions of the connection, so that its receiver wakes."""
            self.set_state(dead)
            shut_down(self.socket)

        def _close_write(self) -> None:
            shut_down(self.socket, socket.SHUT_WR)

        def send(self, buf: Any, close_socket: bool = False) -> bool:
            """Queue a message of the framework itself: a hello or an echo request."""
            self.enqueue(SendPriority.URGENT, bytes(buf))
            self.last = close_socket
            return self.send_q is not None

        last = False

        def _send_loop(self) -> None:
            try:
                while self.state != dead:
                    self.wake.wait()
                    self.wake.clear()
                    while self.queue and self.state != dead and not edge.silenced:
                        self.socket.sendall(self.queue.take())
                        if self.queue:  # it still reads, and the socket's timeout judges that
                            self.unreplied_echo_requests.clear()
                        hub.sleep(0)
                    if self.last:
                        break
            except OSError:
                pass
            finally:
                self.send_q = None
                self._close_write()

        def _recv_loop(self) -> None:
            try:
                self._receive()
            except Malformed as error:
                self.abort(str(error))
            except OSError:
                pass
            except Exception as error:
                edge.bug(error)
                self.end()
            finally:
                self.socket.close()

        def _receive(self) -> None:
            rest, count = b"", 0
            while self.state != dead:
                while edge.busy(self):
                    self.unreplied_echo_requests.clear()  # its answer may wait here unread
                    hub.sleep(PAUSE)
                try:
                    data = self.socket.recv(RECEIVE_BYTES)
                except TimeoutError:
                    continue
                if not data:
                    return
                self.unreplied_echo_requests.clear()  # who says anything is there
                rest = rest + data if rest else data
                place = 0
                while len(rest) - place >= HEADER.size:
                    kind, length, _ = header(rest, place)
                    if length < HEADER.size:
                        raise Malformed(f"a message of {length} bytes")
                    if len(rest) - place < length:
                        break
                    self._message(kind, rest[place : place + length])
                    place += length
                    count += 1
                    if count % MESSAGES_A_TURN == 0:
                        hub.sleep(0)
                    if self.state == dead:
                        return
                rest = rest[place:]

        def _message(self, kind: int, message: bytes) -> None:
            if kind == MessageType.ECHO_REQUEST:
                self.enqueue(SendPriority.URGENT, echo_reply(message))
            elif self.state == main and (kind != MessageType.ECHO_REPLY or _probed(message)):
                edge.received(self, message)
            elif self.state == config and kind == MessageType.FEATURES_REPLY:
                self._named(message)
            else:
                self._framework(message)

        def _named(self, message: bytes) -> None:
            """The switch has sent its datapath id; modules that need its ports request them."""
            self.id = datapath_id(message)
            self.ports: dict[int, Any] = {}
            self.set_state(main)

        def _framework(self, message: bytes) -> None:
            """Let the framework handle a message as it would without us."""
            kind, length, xid = header(message)
            version = HEADER.read(message).version
            try:
                parsed = framework.parser.msg(self, version, kind, length, xid, message)
            except Exception as error:
                raise Malformed(f"a message of type {kind} that cannot be read") from error
            if parsed is None:
                raise Malformed(f"a message of type {kind} that cannot be read")
            event = framework.ofp_event.ofp_msg_to_ev(parsed)
            self.ofp_brick.send_event_to_observers(event, self.state)
            for handler in self.ofp_brick.get_handlers(event, self.state):
                handler(event)

    return OwnDatapath
