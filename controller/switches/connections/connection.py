"""A connection's socket: the framework's datapath with a receiver and a sender of our own.

The framework reads a few bytes at a time, makes an object of each entry of a reply, and sends
everything through one short queue and a thread. Here replies stay bytes, echo replies go first, and
a thread sends only what the socket does not take at once. The framework still handles hello,
features and messages for other apps.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any, ClassVar

from compilers.readers.openflow.rows import Malformed
from compilers.targets.openflow.protocol import (
    HEADER,
    MessageType,
    header,
    message,
)
from controller.openflow.messages import OUR_ECHOES, datapath_id, echo_reply
from controller.switches.connections.listening import shut_down
from controller.switches.connections.sending import Overflow, SendPriority, SendQueue
from controller.switches.framework import Framework

RECEIVE_BYTES = 64 * 1024
"""Bytes received at once; for a buffer of more the system is asked for memory each time."""
SEND_BUFFER = 256 * 1024
"""Bytes of the kernel's send buffer for a switch; the rest waits in our queue, in order."""
KEPT_ALIVE = {
    socket.TCP_KEEPIDLE: 15,
    socket.TCP_KEEPINTVL: 15,
    socket.TCP_KEEPCNT: 3,
    socket.TCP_USER_TIMEOUT: 60_000,
}
"""The kernel asks a silent peer every 15 s whether it is there, and waits 60 s for it to confirm
what it was sent. Switches of the build are asked much sooner, by the session; this ends connections
of others."""
HELLO = message(MessageType.HELLO, 0)
"""Greets a switch."""
MOST_HALF_OPEN_BYTES = 64 * 1024
"""Bytes that may wait in our queue for a peer that has not identified itself."""
PAUSE = 0.05
"""Seconds between a receiver's checks whether the inbox has room again."""
MESSAGES_A_TURN = 64
"""Messages handled before other connections are served."""
MESSAGES_A_LOOK = 16
"""Messages after each of which a peer is ended that is no switch of the build, if all of its kind
talk too much. A switch names itself with fewer.
"""
THEIRS, MOST_THEIRS = 0xC0000000, 0xCFFFFFFF
"""The xids of messages of other apps; ours are lower, or begin with 0xFF."""
TOLD = frozenset({MessageType.PORT_STATUS, MessageType.PACKET_IN, MessageType.FLOW_REMOVED})
"""What a switch tells without having been asked."""
HANDSHAKE = frozenset(
    {
        MessageType.HELLO,
        MessageType.ERROR,
        MessageType.ECHO_REQUEST,
        MessageType.ECHO_REPLY,
        MessageType.FEATURES_REPLY,
    }
)
"""What a peer says until it has named itself."""
MOST_HANDSHAKE_BYTES = 512
"""Bytes of such a message: a hello lists versions, an error the beginning of what it refuses."""


class SwitchConnection:
    """A connection with a switch; `use` puts it in front of the framework's datapath class."""

    framework: ClassVar[Framework]
    """The framework."""
    edge: ClassVar[Any]
    """Gets what arrives (`controller.app.Inbox`)."""
    others: ClassVar[bool]
    """Whether there are other apps, which get their events, too."""
    main: ClassVar[str]
    """The framework's state of a connection whose switch has named itself."""
    dead: ClassVar[str]
    """The framework's state of a connection that has ended."""
    config: ClassVar[str]
    """The framework's state of a connection that waits for the switch's features."""

    # Attributes of the framework's class.
    state: Any
    """How far the connection has come, by the framework's names of states."""
    send_q: Any
    """The framework's queue, which stays empty; None once nothing is sent any more."""
    socket: Any
    """The socket."""
    id: int | None
    """The switch's datapath id; None before it is known."""
    ofp_brick: Any
    """The framework's app that has the handlers of messages."""

    theirs = THEIRS
    """The last xid of a message of another app."""
    last = False
    """Whether the connection is closed once its queue is empty."""

    def __init__(self, sock: Any, address: Any) -> None:
        self.queue, self.sender = SendQueue(), None
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEPT_ALIVE.items():
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
        super().__init__(sock, address)  # type: ignore[call-arg]

    def serve(self) -> None:
        """Greet the switch, and hear it until the connection ends."""
        try:
            self.enqueue(SendPriority.URGENT, HELLO)
            self._recv_loop()
        finally:
            self.is_active, self.send_q = False, None
            if self.sender:
                self.framework.hub.kill(self.sender)

    def set_state(self, state: str) -> None:
        """Tell the edge at once: the framework's queue of events holds up who fills it."""
        if state == self.state:
            return
        if self.others:
            super().set_state(state)  # type: ignore[misc]
        self.state = state
        if state in (self.main, self.dead):
            self.edge.changed(self, named=state == self.main)

    def set_xid(self, msg: Any) -> int:
        """Number a message of another app."""
        if not self.others:
            return int(super().set_xid(msg))  # type: ignore[misc]
        self.theirs = THEIRS | (self.theirs + 1) & (MOST_THEIRS - THEIRS)
        msg.set_xid(self.theirs)
        return self.theirs

    def enqueue(self, priority: SendPriority, data: bytes | None) -> None:
        """Queue whole messages, or close the connection if there are none (None); a switch that
        does not read them is disconnected.
        """
        if data is None:
            self.end()
            return
        if self.send_q is None:
            return
        try:
            if self.id is None and self.queue.waiting() > MOST_HALF_OPEN_BYTES:
                raise Overflow
            self.queue.put(priority, data)
        except Overflow:
            self.abort("does not read our answers")
            return
        self.edge.unsent(self)

    def abort(self, text: str) -> None:
        """Close the connection because of what its peer did."""
        self.edge.malformed(self, text)
        self.end()

    def end(self) -> None:
        """Close both directions of the connection, so that its receiver wakes."""
        self.set_state(self.dead)
        shut_down(self.socket)

    def _close_write(self) -> None:
        """Send nothing more."""
        shut_down(self.socket, socket.SHUT_WR)

    def send(self, buf: Any, close_socket: bool = False) -> bool:
        """Queue a message of the framework itself: a hello or an echo request."""
        self.enqueue(SendPriority.URGENT, bytes(buf))
        self.last = close_socket
        return self.send_q is not None

    def flush(self) -> None:
        """Send what waits, as far as the socket takes it at once; the rest in a thread."""
        if self.sender or self.send_q is None:
            return
        with suppress(OSError):  # the receiver hears of it
            while self._may_send() and hasattr(self.socket, "fd"):  # TLS waits for both ways
                data = self.queue.take()
                try:
                    rest = data[self.socket.fd.send(data) :]
                except BlockingIOError:
                    rest = data
                if rest:
                    self.queue.put_back(rest)
                    break
            if self._may_send():
                self.sender = self.framework.hub.spawn(self._send_loop)
            elif self.last:
                self._close_write()

    def _may_send(self) -> bool:
        """Whether something waits that may be sent."""
        return bool(self.queue) and self.state != self.dead and not self.edge.silenced

    def _send_loop(self) -> None:
        """Send what waits, in a thread, until nothing does."""
        try:
            while self._may_send():
                self.socket.sendall(self.queue.take())
                self.framework.hub.sleep(0)
            self.sender = None
            if self.last:
                self._close_write()
        except OSError:
            self.send_q = None
            self.end()

    def _recv_loop(self) -> None:
        """Take what the switch says, until the connection ends."""
        try:
            for kind, message in self._messages():
                if self.id is None and not self._is_of_handshake(kind, message):
                    continue
                if kind == MessageType.ECHO_REQUEST:
                    self.enqueue(SendPriority.URGENT, echo_reply(message))
                elif self.state == self.main:
                    self._pass_on(kind, message)
                elif self._names_itself(kind):
                    self._named(message)
                else:
                    self._framework(message)
        except Malformed as error:
            self.abort(str(error))
        except OSError:
            pass
        except Exception as error:
            self.edge.bug(error)
            self.end()
        finally:
            self.socket.close()

    def _pass_on(self, kind: int, message: bytes) -> None:
        """Pass a message of a switch that has named itself on to us, to other apps, or to both."""
        xid, is_told = header(message)[2], kind in TOLD
        is_theirs = self.others and THEIRS <= xid <= MOST_THEIRS
        is_idle_echo = kind == MessageType.ECHO_REPLY and xid not in OUR_ECHOES
        if (is_told or not is_theirs) and not is_idle_echo and self.edge.of_build(self):
            self.edge.put(self, message)
        if self.others and (is_told or is_theirs):
            with suppress(Malformed):  # it is nothing to other apps
                self._framework(message)

    def _is_of_handshake(self, kind: int, message: bytes) -> bool:
        """Whether a message of a peer without a name is for the framework, which takes a second to
        read some of 64 KB, while all switches wait. What a switch tells unasked is ignored.

        Raises:
            Malformed: it is anything else, or too long.
        """
        if kind in TOLD:
            return False
        if kind not in HANDSHAKE or len(message) > MOST_HANDSHAKE_BYTES:
            text = f"a message of type {kind} and {len(message)} bytes before its datapath id"
            raise Malformed(text)
        return True

    def _names_itself(self, kind: int) -> bool:
        """Whether a message of this type has the datapath id, and is handled here."""
        has_features = self.state == self.config and kind == MessageType.FEATURES_REPLY
        return has_features and not self.others

    def _messages(self) -> Iterator[tuple[int, bytes]]:
        """What the switch says, until the connection ends."""
        rest, count = b"", 0
        while self.state != self.dead:
            while self.edge.full(self):
                self.framework.hub.sleep(PAUSE)
            try:
                data = self._received()
            except (TimeoutError, BlockingIOError):
                continue
            if not data:
                return
            rest = rest + data if rest else data
            place = 0
            while len(rest) - place >= HEADER.size:
                kind, length, _ = header(rest, place)
                if length < HEADER.size:
                    raise Malformed(f"a message of {length} bytes")
                if len(rest) - place < length:
                    break
                yield kind, rest[place : place + length]
                place += length
                count += 1
                if count % MESSAGES_A_LOOK == 0 and not self.edge.bears(self, MESSAGES_A_LOOK):
                    raise Malformed("too many messages of peers that are no switches of the build")
                if count % MESSAGES_A_TURN == 0:
                    self.framework.hub.sleep(0)
                if self.state == self.dead:
                    return
            rest = rest[place:]

    def _received(self) -> bytes:
        """What arrives next. Without TLS only that wakes us: a timeout is a timer each time."""
        if not hasattr(self.socket, "fd"):
            return bytes(self.socket.recv(RECEIVE_BYTES))
        from eventlet.hubs import trampoline

        trampoline(self.socket.fd, read=True)
        return bytes(self.socket.fd.recv(RECEIVE_BYTES))

    def _named(self, message: bytes) -> None:
        """The switch has sent its datapath id; modules that need its ports request them."""
        self.id = datapath_id(message)
        self.ports: dict[int, Any] = {}
        self.set_state(self.main)

    def _framework(self, message: bytes) -> None:
        """Let the framework handle a message as it would without us."""
        kind, length, xid = header(message)
        version = HEADER.read(message).version
        try:
            parsed = self.framework.parser.msg(self, version, kind, length, xid, message)
        except Exception as error:
            raise Malformed(f"a message of type {kind} that cannot be read") from error
        if parsed is None:
            raise Malformed(f"a message of type {kind} that cannot be read")
        event = self.framework.ofp_event.ofp_msg_to_ev(parsed)
        self.ofp_brick.send_event_to_observers(event, self.state)
        for handler in self.ofp_brick.get_handlers(event, self.state):
            handler(event)


def use(framework: Framework, edge: Any, others: bool = False) -> Any:
    """Make the framework use our datapath class from now on.

    With `others`, other apps get their events, too. What a switch tells of itself goes to us and to
    them, an answer to who has asked: the framework numbers their messages in a range of their own.
    Switches of no build are theirs alone, and hello and features take the framework's own path.

    Args:
        framework: Ryu or os-ken.
        edge: gets what arrives (`controller.app.Inbox`).
        others: whether there are other apps.

    Returns:
        The class; its instances are the keys of connections.
    """
    settings = {
        "framework": framework,
        "edge": edge,
        "others": others,
        "main": framework.handler.MAIN_DISPATCHER,
        "dead": framework.handler.DEAD_DISPATCHER,
        "config": framework.handler.CONFIG_DISPATCHER,
    }
    datapath_class = type("OwnDatapath", (SwitchConnection, framework.datapath), settings)

    def serve(sock: Any, address: Any) -> None:
        with closing(datapath_class(sock, address)) as datapath:
            datapath.serve()

    framework.controller.datapath_connection_factory = serve  # type: ignore[attr-defined]
    return datapath_class
