"""The app for Ryu and os-ken: passes messages of switches to the fabric, and runs its timer.

`serve` runs the controller until a signal ends it. Connections
(`controller.switches.connections.connection`) put messages into an `Inbox`, whose thread passes
them to the sessions of the fabric, in the order of their arrival. A thousand replies may arrive at
once. They are handled in slices, between which the connections answer echo requests, so that no
switch waits for all of them.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from compilers.readers.openflow.rows import Malformed
from controller.composition import Controller
from controller.settings import Settings
from controller.switches.connections import connection
from controller.switches.current import Current
from controller.switches.events import UnnamedPeer
from controller.switches.framework import Framework
from controller.switches.peers import TokenBucket
from controller.upkeep.background import SLICE, freeze
from controller.watchdog import end_process

TICK = 0.25
"""Seconds between two ticks of the controller."""
TICKS_A_FILE_CHECK = 8
"""Ticks between two checks whether the TLS files have changed."""
MOST_WAITING_BYTES = 128 << 20
"""Waiting bytes above which receiving stops."""
MOST_CONNECTION_BYTES = 8 << 20
"""Waiting bytes of one connection above which receiving from it stops."""
UNKNOWN_PEERS_RATE = 2000.0
"""Most messages a second of all peers together that are no switches of the build."""
NAMED, ENDED = b"named", b"ended"
"""Notes in the inbox among the messages: a switch has sent its datapath id; a connection has ended.
They are told from messages by identity (`is`), not by their bytes.
"""


class _Waiting(NamedTuple):
    """A message or a note in the inbox."""

    datapath: Any
    """The connection that it came from."""
    message: bytes
    """The message, or NAMED or ENDED."""
    arrived: float
    """When it came, by the fabric's clock."""


class Inbox:
    """The messages from switches that wait to be handled.

    Args:
        hub: the framework's green threads.
        controller: the controller whose fabric gets them.
    """

    def __init__(self, hub: Any, controller: Controller) -> None:
        self._hub, self._controller, self._fabric = hub, controller, controller.fabric
        member = controller.member
        self._sessions = member.roles if member else controller.fabric
        """Handles the messages: the fabric, or with several controllers their roles first."""
        self._waiting: deque[_Waiting] = deque()
        """The messages and notes, in the order in which they came."""
        self._bytes = 0
        """The bytes of all messages."""
        self._bytes_of: dict[Any, int] = {}
        """The bytes of each connection's messages."""
        self._unsent: dict[Any, None] = {}
        """The connections that have something to send, in order."""
        self._sends_soon = False
        """Whether the hub has been asked to have them send."""
        self._arrived = hub.Event()
        """Set while messages wait."""
        self._unknown_peers = TokenBucket(controller.fabric.clock, UNKNOWN_PEERS_RATE)
        """Limits the messages of peers that are no switches of the build."""

    # Called by connections

    def note_named(self, datapath: Any) -> None:
        """Note that a switch has sent its datapath id; handled after the messages before it."""
        self._controller.entrance.identified(datapath.address, self.is_of_build(datapath))
        self.put(datapath, NAMED)

    def note_ended(self, datapath: Any) -> None:
        """Note that a connection has ended; handled after the messages before it."""
        self.put(datapath, ENDED)

    def is_of_build(self, datapath: Any) -> bool:
        """Whether a connection is that of a switch of the build."""
        return datapath.id in self._fabric.current.programs.by_datapath_id

    def accepts(self, datapath: Any, messages: int) -> bool:
        """Whether a peer may send so many more messages; they count against its limit.

        The build's switches are not limited. With other apps no peer is limited, as any may be a
        switch of these apps. Otherwise unknown peers are limited: each of their echo requests is
        answered, so they could keep switches waiting.
        """
        is_unlimited = self._controller.settings.apps or self.is_of_build(datapath)
        return bool(is_unlimited) or self._unknown_peers.take(messages)

    def put(self, datapath: Any, message: bytes) -> None:
        """Add a message that has arrived."""
        self._waiting.append(_Waiting(datapath, message, self._fabric.clock()))
        self._count(datapath, len(message))
        if not self._arrived.is_set():
            self._arrived.set()

    def note_unsent(self, datapath: Any) -> None:
        """Note that a connection has messages to send.

        They are sent after the message that is being handled, or at the next turn of the hub. So
        all answers to one message are sent together, and at once.
        """
        self._unsent[datapath] = None
        if not self._sends_soon:
            self._sends_soon = True
            self._hub.spawn(self._send)

    def must_pause(self, datapath: Any) -> bool:
        """Whether receiving from a connection must pause."""
        if self._bytes > MOST_WAITING_BYTES:
            return True
        return self._bytes_of.get(datapath, 0) > MOST_CONNECTION_BYTES

    @property
    def is_silenced(self) -> bool:
        """Whether sending is forbidden, because another controller leads."""
        return self._controller.member is not None and self._controller.member.lapsed

    def report_malformed(self, datapath: Any, text: str) -> None:
        """Report that a connection is closed because of malformed data."""
        self._fabric.malformed(datapath, text)

    def report_bug(self, error: Exception) -> None:
        """Report that a connection is closed because of an internal error."""
        self._controller.watchdog.record_error("handling what switches say", error)

    # Handling

    @property
    def oldest_arrival(self) -> float | None:
        """When the oldest waiting message came; None without one, 0 while receiving stops.

        The time up to which all switches have been heard is computed from it. While receiving
        stops, messages may wait unread in the sockets, since nobody knows when.
        """
        if self._bytes > MOST_WAITING_BYTES:
            return 0.0
        return self._waiting[0].arrived if self._waiting else None

    def handle_messages(self) -> None:
        """Handle messages for ever; a bad message ends only its own connection."""
        while True:
            self._arrived.wait()
            self._arrived.clear()
            began = perf_counter()
            while self._waiting:
                datapath, message, _ = self._waiting.popleft()
                self._count(datapath, -len(message))
                self._handle(datapath, message)
                self._flush_unsent()
                if perf_counter() - began > SLICE:
                    self._hub.sleep(0)
                    began = perf_counter()

    def _handle(self, datapath: Any, message: bytes) -> None:
        """Handle a message; a bad one ends its connection."""
        try:
            if message is NAMED:
                self._named(datapath)
            elif message is ENDED:
                self._ended(datapath)
            else:
                self._sessions.received(datapath, message)
        except Malformed as error:
            datapath.abort(str(error))
        except Exception as error:
            with suppress(Exception):  # nothing may end the loop
                self.report_bug(error)
                datapath.end()

    def _send(self) -> None:
        """Send the queued messages of all connections, as a green thread of its own."""
        self._sends_soon = False
        self._flush_unsent()

    def _flush_unsent(self) -> None:
        """Send the queued messages of all connections."""
        while self._unsent:
            datapath, _ = self._unsent.popitem()
            datapath.flush()

    def _count(self, datapath: Any, size: int) -> None:
        """Add to the bytes that wait, or subtract from them where `size` is negative."""
        self._bytes += size
        waiting = self._bytes_of.pop(datapath, 0) + size
        if waiting:
            self._bytes_of[datapath] = waiting

    def _named(self, datapath: Any) -> None:
        """Start the session of a switch that has sent its datapath id."""
        host, port = datapath.address[:2]
        nodes = self._controller.entrance.nodes(datapath.address)
        self._sessions.connected(datapath, datapath.id, f"{host}:{port}", nodes)

    def _ended(self, datapath: Any) -> None:
        """End the session of a connection that has ended; without one, count a rejected peer."""
        if datapath.id is None:
            reason = "it disconnected before"
            self._fabric.rejected.add(UnnamedPeer, str(datapath.address[0]), reason)
        else:
            self._sessions.closed(datapath)


def app_class(framework: Framework, hang_ups: list[int]) -> Any:
    """The app as a class of the framework: `PolarfabApp(controller=…)`.

    Args:
        framework: Ryu or os-ken.
        hang_ups: each SIGHUP that was received, until it is answered.
    """
    handler, hub = framework.handler, framework.hub

    class PolarfabApp(framework.app):  # type: ignore[misc, name-defined]
        """Programs the switches of a build. All threads are the hub's: one runs at a time."""

        OFP_VERSIONS = (framework.ofproto.OFP_VERSION,)

        def __init__(self, *args: Any, controller: Controller, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.controller = controller
            self.inbox = Inbox(hub, controller)
            has_other_apps = bool(controller.settings.apps)
            datapath_class = connection.use_connections(framework, self.inbox, has_other_apps)
            controller.fabric.send = datapath_class.enqueue

        def start(self) -> None:
            """Start handling and reporting."""
            super().start()
            freeze()  # garbage collection took a quarter of the time that a switch needs
            framework.drop_error_log()
            self.threads.append(hub.spawn(self._ticks))
            # It never ends, so the framework must not wait for it as for `threads`.
            handling = hub.spawn(self.inbox.handle_messages)
            self.controller.watchdog.follow("handling what switches say", handling)

        @handler.set_ev_cls(framework.ofp_event.EventOFPStateChange, handler.HANDSHAKE_DISPATCHER)
        def on_handshake(self, _: Any) -> None:
            """Do nothing: for this handler the framework loads its handshake with switches."""

        def _ticks(self) -> None:
            """Call the controller's tick at intervals, for as long as the app runs."""
            ticks = 0
            while self.is_active:
                if hang_ups:
                    hang_ups.clear()
                    self.controller.reload()
                self.controller.fabric.listening_clock.update(self.inbox.oldest_arrival)
                self.controller.tick(checks_certificates=ticks % TICKS_A_FILE_CHECK == 0)
                ticks += 1
                hub.sleep(TICK)

    return PolarfabApp


SIGNAL_POLL = 0.1
"""Seconds between two checks for a signal."""


def serve(
    framework: Framework,
    read: Callable[[], Current],
    settings: Settings,
    write: Callable[[str], None],
    folder: Path,
) -> None:
    """Program switches until SIGINT or SIGTERM; the arguments are those of `Controller`.

    Raises:
        InputError: insecure settings, files that cannot be read or written, too few open files, an
            address that cannot be listened at, or another app that cannot be used.
        RuntimeError: the controller has stopped working.
    """
    settings.check()
    framework.quieten()
    framework.configure(settings.listen.host, settings.listen.port, settings.apps)
    hang_ups: list[int] = []
    signal.signal(signal.SIGHUP, lambda received, _: hang_ups.append(received))
    controller = Controller(framework, read, settings, write, folder)  # it listens from here on
    stops: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: stops.append(received))
    manager = framework.app_manager.AppManager.get_instance()
    manager.instantiate(app_class(framework, hang_ups), controller=controller)
    controller.begin()
    listener = framework.start(settings.apps)
    controller.watchdog.guard_checks(end_process)
    while not stops:
        if getattr(listener, "dead", False):
            raise RuntimeError(f"{framework.name} stopped listening")
        controller.watchdog.check()
        framework.hub.sleep(SIGNAL_POLL)
    controller.end(signal.Signals(stops[0]).name)
