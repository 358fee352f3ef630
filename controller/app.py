"""The app for Ryu and os-ken: passes messages of switches to the fabric and sends its answers."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from controller.cluster.cluster_member import ClusterMember
from controller.cluster.roles import Roles
from controller.pulse import Pulse
from controller.reporter import Reporter
from controller.switches.connections import connection
from controller.switches.connections.inbox import ENDED, NAMED, Inbox
from controller.switches.connections.listening import Entrance
from controller.switches.events import CertificatesKept, CertificatesLoaded, UnnamedPeer
from controller.switches.framework import Framework
from controller.switches.session import LiveFabric
from inventory.problems import InputError

if TYPE_CHECKING:
    from controller.management.http_api import Api

TICK = 0.25
"""Seconds between two reports."""
TICKS_A_LOOK = 8
"""Ticks between two looks at the TLS files."""


def app_class(framework: Framework) -> Any:
    """The app as a class of the framework: `App(reporter=…, reload=…, member=…)`."""
    handler, hub = framework.handler, framework.hub
    main, dead = handler.MAIN_DISPATCHER, handler.DEAD_DISPATCHER

    class App(framework.app):  # type: ignore[misc, name-defined]
        """Programs the switches of a build. All threads are the hub's: one runs at a time.

        reload moves the fabric that the reporter reports on to the build of its folder; member is
        set if this is one of several controllers, entrance if the listener is ours. others: whether
        other apps run beside this one. api: the management API, once it is served.
        """

        OFP_VERSIONS = (framework.ofproto.OFP_VERSION,)

        api: Api | None = None

        def __init__(
            self,
            *args: Any,
            reporter: Reporter,
            reload: Callable[[], None],
            member: ClusterMember | None = None,
            entrance: Entrance | None = None,
            pulse: Pulse | None = None,
            others: bool = False,
            **kwargs: Any,
        ) -> None:
            super().__init__(*args, **kwargs)
            self.fabric, self.reporter, self._reload = reporter.fabric, reporter, reload
            self.member, self.entrance, self.hung_up = member, entrance, False
            self.pulse = pulse or Pulse(self.fabric.tell)
            self.sessions: Roles | LiveFabric = member.roles if member else reporter.fabric
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

        def reload(self) -> None:
            """Read the build again and move the switches to it; a bad one is only reported."""
            try:
                self._reload()
            except InputError as error:
                self.fabric.cannot_load(str(error))

        def follow_files(self, now: bool = False) -> None:
            """Use new certificates and revocation lists, if they have changed."""
            if self.entrance is None or self.entrance.tls is None:
                return
            tls, file = self.entrance.tls, str(self.entrance.tls.tls.certificate)
            try:
                if tls.follow(now):
                    self.fabric.tell(CertificatesLoaded(file))
                    self.entrance.end_revoked()
            except InputError as error:
                self.fabric.tell(CertificatesKept(file, str(error)))

        def _hang_up(self, *_: Any) -> None:
            self.hung_up = True

        def _ticks(self) -> None:
            step, ticks = self.pulse.step, 0
            while self.is_active:
                if self.hung_up:
                    self.hung_up = False
                    step("reading the build again", self.reload)
                    step("reading certificates again", partial(self.follow_files, now=True))
                    if self.api:
                        step("reading tokens again", self.api.read_tokens_again)
                self.fabric.heard.look(self.inbox.oldest)
                step("repairing and moving", self.fabric.tick)
                if self.entrance:
                    step("ending idle connections", self.entrance.tick)
                if ticks % TICKS_A_LOOK == 0:
                    step("looking for new certificates", self.follow_files)
                step("sending", self.flush)
                step("reporting", self.reporter.tick)
                self.pulse.round()
                ticks += 1
                hub.sleep(TICK)

    return App
