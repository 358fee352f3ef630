"""The connection with a switch: the framework's datapath class with another receiver and sender.

Messages that arrive go to the controller's `Inbox` (`controller.app`); the sessions send by
`SwitchConnection.enqueue`. The framework itself would read a few bytes at a time, make an object of
each entry of a reply, and send everything through one short queue and a thread. Here replies stay
bytes, echo replies go first, and a thread sends only what the socket does not take at once. The
framework still handles hello, features and messages for other apps.
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
"""Bytes of the kernel's send buffer for a switch; the rest waits in the connection's queue."""
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
"""Most bytes that wait in the queue for a peer that has not identified itself."""
PAUSE = 0.05
"""Seconds between a receiver's checks whether the inbox has room again."""
MESSAGES_A_TURN = 64
"""Messages handled before other connections are served."""
MESSAGES_A_CHECK = 16
"""Messages of a connection between two checks whether the inbox accepts more of its messages.

A switch of the build has sent its datapath id long before the first check, as its handshake has
fewer messages. So the check only limits peers that are no switches of the build.
"""
FIRST_APP_XID, LAST_APP_XID = 0xC0000000, 0xCFFFFFFF
"""The xids of messages of other apps; polarfab's are lower, or begin with 0xFF."""
UNSOLICITED = frozenset({MessageType.PORT_STATUS, MessageType.PACKET_IN, MessageType.FLOW_REMOVED})
"""The messages that a switch sends without a request."""
HANDSHAKE = frozenset(
    {
        MessageType.HELLO,
        MessageType.ERROR,
        MessageType.ECHO_REQUEST,
        MessageType.ECHO_REPLY,
        MessageType.FEATURES_REPLY,
    }
)
"""The messages that a peer may send until it has sent its datapath id."""
MOST_HANDSHAKE_BYTES = 512
"""Most bytes of a message of the handshake: a hello lists versions, an error quotes a refused
message."""


class SwitchConnection:
    """A connection with a switch; `use_connections` derives the framework's class from it."""

    framework: ClassVar[Framework]
    """The framework."""
    inbox: ClassVar[Any]
    """Takes the messages that arrive (`controller.app.Inbox`)."""
    has_other_apps: ClassVar[bool]
    """Whether there are other apps, which get their events, too."""
    main_state: ClassVar[str]
    """The framework's state of a connection whose switch has sent its datapath id."""
    dead_state: ClassVar[str]
    """The framework's state of a connection that has ended."""
    config_state: ClassVar[str]
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

    last_app_xid = FIRST_APP_XID
    """The last xid of a message of another app."""
    closes_when_sent = False
    """Whether the connection is closed once its queue is empty."""

    def __init__(self, sock: Any, address: Any) -> None:
        self.queue, self.sender = SendQueue(), None
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEPT_ALIVE.items():
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
        super().__init__(sock, address)  # type: ignore[call-arg]

    def serve(self) -> None:
        """Send a hello, and receive messages until the connection ends."""
        try:
            self.enqueue(SendPriority.URGENT, HELLO)
            self._recv_loop()
        finally:
            self.is_active, self.send_q = False, None
            if self.sender:
                self.framework.hub.kill(self.sender)

    def set_state(self, state: str) -> None:
        """Change the framework's state of the connection.

        The inbox is told directly: the framework's queue of events would block this thread.
        """
        if state == self.state:
            return
        if self.has_other_apps:
            super().set_state(state)  # type: ignore[misc]
        self.state = state
        if state == self.main_state:
            self.inbox.note_named(self)
        elif state == self.dead_state:
            self.inbox.note_ended(self)

    def set_xid(self, msg: Any) -> int:
        """Number a message of another app."""
        if not self.has_other_apps:
            return int(super().set_xid(msg))  # type: ignore[misc]
        number = (self.last_app_xid + 1) & (LAST_APP_XID - FIRST_APP_XID)
        self.last_app_xid = FIRST_APP_XID | number
        msg.set_xid(self.last_app_xid)
        return self.last_app_xid

    def enqueue(self, priority: SendPriority, data: bytes | None) -> None:
        """Queue messages, or close the connection (None).

        A switch whose queue gets too long, as it does not read, is disconnected.
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
        self.inbox.note_unsent(self)

    def abort(self, text: str) -> None:
        """Close the connection because of a fault of its peer, and report that."""
        self.inbox.report_malformed(self, text)
        self.end()

    def end(self) -> None:
        """Close both directions of the connection, so that its receiver wakes."""
        self.set_state(self.dead_state)
        shut_down(self.socket)

    def _close_write(self) -> None:
        """Send nothing more."""
        shut_down(self.socket, socket.SHUT_WR)

    def send(self, buf: Any, close_socket: bool = False) -> bool:
        """Queue a message of the framework itself: a hello or an echo request."""
        self.enqueue(SendPriority.URGENT, bytes(buf))
        self.closes_when_sent = close_socket
        return self.send_q is not None

    def flush(self) -> None:
        """Send the queue, as far as the socket takes it at once; the rest in a thread."""
        if self.sender or self.send_q is None:
            return
        with suppress(OSError):  # the receiver meets the same error
            # A TLS socket has no `fd`: to send it may have to receive first, so a thread sends.
            while self._may_send() and hasattr(self.socket, "fd"):
                data = self.queue.take()
                try:
                    sent_bytes = self.socket.fd.send(data)
                except BlockingIOError:
                    sent_bytes = 0
                if sent_bytes < len(data):
                    self.queue.put_back(data[sent_bytes:])
                    break
            if self._may_send():
                self.sender = self.framework.hub.spawn(self._send_loop)
            elif self.closes_when_sent:
                self._close_write()

    def _may_send(self) -> bool:
        """Whether the queue has a message and it may be sent."""
        return bool(self.queue) and self.state != self.dead_state and not self.inbox.is_silenced

    def _send_loop(self) -> None:
        """Send the queue, in a thread, until it is empty."""
        try:
            while self._may_send():
                self.socket.sendall(self.queue.take())
                self.framework.hub.sleep(0)
            self.sender = None
            if self.closes_when_sent:
                self._close_write()
        except OSError:
            self.send_q = None
            self.end()

    def _recv_loop(self) -> None:
        """Handle the switch's messages, until the connection ends."""
        try:
            for kind, received in self._messages():
                if self.id is None and not self._is_of_handshake(kind, received):
                    continue
                if kind == MessageType.ECHO_REQUEST:
                    self.enqueue(SendPriority.URGENT, echo_reply(received))
                elif self.state == self.main_state:
                    self._pass_on(kind, received)
                elif self._has_datapath_id(kind):
                    self._take_datapath_id(received)
                else:
                    self._handle_in_framework(received)
        except Malformed as error:
            self.abort(str(error))
        except OSError:
            pass
        except Exception as error:
            self.inbox.report_bug(error)
            self.end()
        finally:
            self.socket.close()

    def _pass_on(self, kind: int, received: bytes) -> None:
        """Pass a switch's message on to the inbox, to other apps, or to both."""
        _, _, xid = header(received)
        is_unsolicited = kind in UNSOLICITED
        is_for_apps = self.has_other_apps and FIRST_APP_XID <= xid <= LAST_APP_XID
        is_idle_echo = kind == MessageType.ECHO_REPLY and xid not in OUR_ECHOES
        is_for_inbox = (is_unsolicited or not is_for_apps) and not is_idle_echo
        if is_for_inbox and self.inbox.is_of_build(self):
            self.inbox.put(self, received)
        if self.has_other_apps and (is_unsolicited or is_for_apps):
            with suppress(Malformed):  # only the inbox ends connections for that
                self._handle_in_framework(received)

    def _is_of_handshake(self, kind: int, received: bytes) -> bool:
        """Whether a message of a peer without a datapath id belongs to the handshake.

        Unsolicited messages do not, and are ignored. Long messages are refused, since the framework
        takes a second to read some of 64 KB, while all switches wait.

        Raises:
            Malformed: it is of another type, or too long.
        """
        if kind in UNSOLICITED:
            return False
        if kind not in HANDSHAKE or len(received) > MOST_HANDSHAKE_BYTES:
            text = f"a message of type {kind} and {len(received)} bytes before its datapath id"
            raise Malformed(text)
        return True

    def _has_datapath_id(self, kind: int) -> bool:
        """Whether a message of this type has the datapath id, and is not left to the framework."""
        has_features = self.state == self.config_state and kind == MessageType.FEATURES_REPLY
        return has_features and not self.has_other_apps

    def _messages(self) -> Iterator[tuple[int, bytes]]:
        """The type and the bytes of each message of the switch, until the connection ends."""
        buffer, count = b"", 0
        while self.state != self.dead_state:
            while self.inbox.must_pause(self):
                self.framework.hub.sleep(PAUSE)
            try:
                data = self._next_bytes()
            except (TimeoutError, BlockingIOError):
                continue
            if not data:
                return
            buffer = buffer + data if buffer else data
            offset = 0
            while len(buffer) - offset >= HEADER.size:
                kind, length, _ = header(buffer, offset)
                if length < HEADER.size:
                    raise Malformed(f"a message of {length} bytes")
                if len(buffer) - offset < length:
                    break
                yield kind, buffer[offset : offset + length]
                offset += length
                count += 1
                is_check = count % MESSAGES_A_CHECK == 0
                if is_check and not self.inbox.accepts(self, MESSAGES_A_CHECK):
                    raise Malformed("too many messages of peers that are no switches of the build")
                if count % MESSAGES_A_TURN == 0:
                    self.framework.hub.sleep(0)
                if self.state == self.dead_state:
                    return
            buffer = buffer[offset:]

    def _next_bytes(self) -> bytes:
        """The next bytes of the socket; no bytes where the peer has closed it.

        Without TLS the plain socket (`fd`) is read when it is ready: the green socket's own `recv`
        would make a timer for its timeout each time.
        """
        if not hasattr(self.socket, "fd"):
            return bytes(self.socket.recv(RECEIVE_BYTES))
        from eventlet.hubs import trampoline

        trampoline(self.socket.fd, read=True)
        return bytes(self.socket.fd.recv(RECEIVE_BYTES))

    def _take_datapath_id(self, message: bytes) -> None:
        """Take the datapath id that the switch has sent."""
        self.id = datapath_id(message)
        self.ports: dict[int, Any] = {}
        self.set_state(self.main_state)

    def _handle_in_framework(self, message: bytes) -> None:
        """Let the framework handle a message."""
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


def use_connections(framework: Framework, inbox: Any, has_other_apps: bool = False) -> Any:
    """Make the framework use a class derived from `SwitchConnection` for its connections.

    With other apps, unsolicited messages of a switch go to the inbox and to these apps. An answer
    goes to the sender of the request: the xids of other apps' messages are in a range of their own.
    Messages of switches that are not of the build go to the other apps only. Then the framework
    itself handles hello and features.

    Args:
        framework: Ryu or os-ken.
        inbox: takes the messages that arrive (`controller.app.Inbox`).
        has_other_apps: whether there are other apps, which get their events, too.

    Returns:
        The class; its instances are the keys of connections.
    """
    settings = {
        "framework": framework,
        "inbox": inbox,
        "has_other_apps": has_other_apps,
        "main_state": framework.handler.MAIN_DISPATCHER,
        "dead_state": framework.handler.DEAD_DISPATCHER,
        "config_state": framework.handler.CONFIG_DISPATCHER,
    }
    datapath_class = type("OwnDatapath", (SwitchConnection, framework.datapath), settings)

    def serve(sock: Any, address: Any) -> None:
        with closing(datapath_class(sock, address)) as datapath:
            datapath.serve()

    framework.controller.datapath_connection_factory = serve  # type: ignore[attr-defined]
    return datapath_class
