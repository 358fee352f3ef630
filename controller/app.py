"""The app for Ryu and os-ken: passes messages of switches to the fabric and sends its answers."""

from __future__ import annotations

import signal
from typing import Any

from controller.cluster.roles import Roles
from controller.composition import Controller
from controller.switches.connections import connection
from controller.switches.connections.inbox import ENDED, NAMED, Inbox
from controller.switches.events import UnnamedPeer
from controller.switches.framework import Framework
from controller.switches.session import LiveFabric

TICK = 0.25
"""Seconds between two reports."""
TICKS_A_LOOK = 8
"""Ticks between two looks at the TLS files."""


def app_class(framework: Framework) -> Any:
    """The app as a class of the framework: `App(controller=…)`."""
    handler, hub = framework.handler, framework.hub
    main, dead = handler.MAIN_DISPATCHER, handler.DEAD_DISPATCHER

    class App(framework.app):  # type: ignore[misc, name-defined]
        """Programs the switches of a build. All threads are the hub's: one runs at a time.

        others: whether other apps run beside this one.
        """

        OFP_VERSIONS = (framework.ofproto.OFP_VERSION,)

        def __init__(
            self, *args: Any, controller: Controller, others: bool = False, **kwargs: Any
        ) -> None:
            super().__init__(*args, **kwargs)
            self.controller, self.fabric, self.hung_up = controller, controller.fabric, False
            self.member, self.entrance = controller.member, controller.entrance
            self.pulse = controller.pulse
            self.sessions: Roles | LiveFabric = (
                self.member.roles if self.member else controller.fabric
            )
            self.inbox = Inbox(hub, self, self.fabric.clock)
            connection.use(framework, self, others)

        def start(self) -> None:
            """Start handling and reporting."""
            super().start()
            framework.drop_error_log()
            signal.signal(signal.SIGHUP, self._hang_up)
            self.threads.append(hub.spawn(self._ticks))
            # It never ends, so nothing may wait for it.
            self.pulse.follow("handling what switches say", hub.spawn(self.inbox.work))

        @handler.set_ev_cls(framework.ofp_event.EventOFPStateChange, handler.HANDSHAKE_DISPATCHER)
        def on_handshake(self, _: Any) -> None:
            """Nothing: for a handler of this the framework loads what greets switches."""

        def changed(self, datapath: Any) -> None:
            """A switch has named itself, or a connection has ended: a message among the others."""
            if datapath.state == main:
                if self.entrance:
                    self.entrance.identified(datapath.address, self._of_build(datapath))
                self.inbox.put(datapath, NAMED)
            elif datapath.state == dead:
                self.inbox.put(datapath, ENDED)

        def _named(self, datapath: Any) -> None:
            host, port = datapath.address[:2]
            nodes = self.entrance.nodes(datapath.address) if self.entrance else None
            self.sessions.connected(datapath, datapath.id, f"{host}:{port}", nodes)

        def _ended(self, datapath: Any) -> None:
            if datapath.id is None:
                reason = "it disconnected before"
                self.fabric.rejected.add(UnnamedPeer, str(datapath.address[0]), reason)
            else:
                self.sessions.closed(datapath)

        def _of_build(self, datapath: Any) -> bool:
            return datapath.id in self.fabric.current.programs.by_datapath_id

        def received(self, datapath: Any, message: bytes) -> None:
            """A switch has sent a message; those of other fabrics are not kept."""
            if self._of_build(datapath):
                self.inbox.put(datapath, message)

        def handle(self, datapath: Any, message: bytes) -> None:
            """Handle a message from the inbox."""
            if message is NAMED:
                self._named(datapath)
            elif message is ENDED:
                self._ended(datapath)
            else:
                self.sessions.received(datapath, message)
            self.flush()

        def busy(self, datapath: Any) -> bool:
            """Whether receiving must pause: the inbox, or this one's part of it, is full."""
            return self.inbox.full(datapath)

        @property
        def silenced(self) -> bool:
            """Whether sending is forbidden, because another controller leads."""
            return self.member is not None and self.member.lapsed

        def malformed(self, datapath: Any, text: str) -> None:
            """A connection is being closed because of malformed data."""
            self.fabric.malformed(datapath, text)

        def bug(self, error: Exception) -> None:
            """A connection is being closed because of a bug of ours."""
            self.pulse.bug("handling what switches say", error)

        def flush(self) -> None:
            """Send the contents of the fabric's outbox."""
            for out in self.fabric.take():
                connection.send(out.key, out.priority, out.data)

        def _hang_up(self, *_: Any) -> None:
            self.hung_up = True

        def _ticks(self) -> None:
            step, ticks = self.pulse.step, 0
            while self.is_active:
                if self.hung_up:
                    self.hung_up = False
                    self.controller.hang_up()
                self.fabric.heard.look(self.inbox.oldest)
                step("repairing and moving", self.fabric.tick)
                if self.entrance:
                    step("ending idle connections", self.entrance.tick)
                if ticks % TICKS_A_LOOK == 0:
                    step("looking for new certificates", self.controller.follow_files)
                step("sending", self.flush)
                step("reporting", self.controller.reporter.tick)
                self.pulse.round()
                ticks += 1
                hub.sleep(TICK)

    return App
