"""The app for Ryu and os-ken: passes messages of switches to the fabric and sends its answers."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from controller.cluster.cluster_member import ClusterMember
from controller.cluster.roles import Roles
from controller.reporter import Reporter
from controller.rollout.mover import Mover
from controller.switches import connection
from controller.switches.current import Current
from controller.switches.framework import Framework
from controller.switches.inbox import Inbox
from controller.switches.session import LiveFabric
from inventory.problems import InputError

TICK = 0.25
"""Seconds between two reports."""


def app_class(framework: Framework) -> Any:
    """The app as a class of the framework: `App(mover=…, reporter=…, read=…, member=…)`."""
    seen, on = framework.ofp_event, framework.handler.set_ev_cls
    main, dead, hub = (
        framework.handler.MAIN_DISPATCHER,
        framework.handler.DEAD_DISPATCHER,
        framework.hub,
    )

    class App(framework.app):  # type: ignore[misc, name-defined]
        """Programs the switches of a build. All threads are the hub's: one runs at a time.

        mover moves the fabric that the reporter reports on; read returns the build to load; member
        is set if this is one of several controllers.
        """

        OFP_VERSIONS = (framework.ofproto.OFP_VERSION,)

        def __init__(
            self,
            *args: Any,
            mover: Mover,
            reporter: Reporter,
            read: Callable[[], Current],
            member: ClusterMember | None = None,
            **kwargs: Any,
        ) -> None:
            super().__init__(*args, **kwargs)
            self.fabric, self.mover, self.reporter, self.read = mover.fabric, mover, reporter, read
            self.member, self.hung_up = member, False
            self.sessions: Roles | LiveFabric = member.roles if member else mover.fabric
            self.inbox = Inbox(hub, self)
            connection.use(framework, self)

        def start(self) -> None:
            """Start handling and reporting."""
            super().start()
            framework.drop_error_log()
            signal.signal(signal.SIGHUP, self._hang_up)
            self.threads.append(hub.spawn(self._ticks))
            hub.spawn(self.inbox.work)  # never ends, so nothing may wait for it

        @on(seen.EventOFPStateChange, [main, dead])
        def on_state(self, event: Any) -> None:
            """A switch has sent its datapath id, or a connection has ended."""
            datapath = event.datapath
            if event.state == main:
                host, port = datapath.address[:2]
                self.sessions.connected(datapath, datapath.id, f"{host}:{port}")
            elif datapath.id is None:
                self.fabric.stranger(str(datapath.address[0]))
            else:
                self.sessions.closed(datapath)
            self.flush()

        def received(self, datapath: Any, message: bytes) -> None:
            """A switch has sent a message."""
            self.inbox.put(datapath, message)

        def handle(self, datapath: Any, message: bytes) -> None:
            """Handle a message from the inbox."""
            self.sessions.received(datapath, message)
            self.flush()

        @property
        def busy(self) -> bool:
            """Whether the inbox is full, so that receiving must pause."""
            return self.inbox.full

        @property
        def silenced(self) -> bool:
            """Whether sending is forbidden, because another controller leads."""
            return self.member is not None and self.member.lapsed

        def malformed(self, datapath: Any, text: str) -> None:
            """A connection is being closed because of malformed data."""
            self.fabric.malformed(datapath, text)

        def flush(self) -> None:
            """Send the contents of the fabric's outbox."""
            for out in self.fabric.take():
                connection.send(out.key, out.priority, out.data)

        def reload(self) -> None:
            """Read the build again and move the switches to it; a bad one is only reported."""
            try:
                self.mover.load(self.read(), by="SIGHUP")
            except InputError as error:
                self.fabric.cannot_load(str(error))

        def _hang_up(self, *_: Any) -> None:
            self.hung_up = True

        def _ticks(self) -> None:
            while self.is_active:
                if self.hung_up:
                    self.hung_up = False
                    self.reload()
                self.fabric.tick()
                self.flush()
                self.reporter.tick()
                hub.sleep(TICK)

    return App
