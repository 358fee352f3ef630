"""A controller put together from its settings: the same parts in each form that it runs in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controller import management
from controller.cluster import cluster_member
from controller.cluster.cluster_member import ClusterMember
from controller.management.action_log import ActionLog, Actor
from controller.management.tokens import Tokens
from controller.pulse import Pulse
from controller.reporter import Reporter
from controller.rollout.build_history import BuildHistory
from controller.rollout.move_journal import journalled
from controller.rollout.mover import Mover
from controller.settings import Settings
from controller.switches.connections import listening
from controller.switches.connections.half_open import half_open_room
from controller.switches.connections.listening import Entrance, check_free
from controller.switches.connections.tls_files import TlsFiles
from controller.switches.current import Current
from controller.switches.events import (
    ApiClosed,
    CertificatesKept,
    CertificatesLoaded,
    ControllerEnded,
    Event,
)
from controller.switches.framework import Framework
from controller.switches.session import LiveFabric
from controller.upkeep.background import in_thread
from controller.upkeep.repair_keeper import Keeper
from controller.upkeep.rolling_audit import RollingAudit
from inventory.problems import InputError

if TYPE_CHECKING:
    from controller.management.http_api import Api

HANGUP = Actor("SIGHUP", "", "")
"""Who asks for the build of the folder: the one who may send a signal."""


@dataclass(slots=True)
class Controller:
    """The parts of a controller.

    read: returns the build of the folder. entrance: the listener, if it is ours. member: set if
    this is one of several controllers. resign: has another one lead. api: set while it is served.
    """

    settings: Settings
    folder: Path
    read: Callable[[], Current]
    fabric: LiveFabric
    keeper: Keeper
    reporter: Reporter
    pulse: Pulse
    actions: ActionLog
    mover: Mover
    entrance: Entrance | None
    member: ClusterMember | None
    resign: Callable[[], None]
    _socket: Any
    _tokens: Tokens
    api: Api | None = None

    @classmethod
    def from_settings(
        cls,
        framework: Framework,
        read: Callable[[], Current],
        settings: Settings,
        write: Callable[[str], None],
        folder: Path,
        where: str,
        ours: bool = True,
    ) -> Controller:
        """Put a controller together; nothing listens for switches yet.

        Args:
            framework: that it runs on.
            read: returns the build, again at each SIGHUP.
            settings: of this controller.
            write: gets a line of output at a time.
            folder: where the build came from; a build applied over the API replaces it.
            where: the beginning of the first line.
            ours: whether the listener is ours.

        Raises:
            InputError: files that cannot be read or written, too few open files, or an address
                where we cannot listen.
        """
        tokens = Tokens.read(settings.tokens) if settings.tokens else Tokens()
        fabric = LiveFabric(read(), framework.error_names, settings.foreign)
        keeper = Keeper(fabric, settings.duties, in_thread)
        RollingAudit(fabric, settings.audit, lambda: keeper.change)
        room = half_open_room(fabric.expected)
        check_free(settings.listen)
        entrance = None
        if ours:
            tls = TlsFiles(settings.tls) if settings.tls else None
            entrance = Entrance(room, tls, fabric.rejected)
            listening.use(framework, entrance)
        socket = _api_socket(settings, fabric.tell)
        reporter = Reporter(fabric, write, settings.as_json, settings.status_file)
        reporter.start(where)
        actions, history = ActionLog(folder, fabric.tell), BuildHistory(folder, settings.unverified)
        reporter.observers.append(actions.happened)
        member, resign = None, fabric.expect
        if settings.group:
            join = cluster_member.join
            member, resign = join(settings, fabric, keeper, history, reporter.finish)
        mover = member.mover if member else journalled(fabric, history, keeper)
        return cls(
            settings,
            folder,
            read,
            fabric,
            keeper,
            reporter,
            Pulse(fabric.tell),
            actions,
            mover,
            entrance,
            member,
            resign,
            socket,
            tokens,
        )

    def begin(self) -> None:
        """Serve the API, and expect switches."""
        if self._socket:
            self.api = management.start(
                self._socket,
                self.settings,
                self._tokens,
                self.reporter,
                self.keeper,
                self.mover,
                self.actions,
                self.pulse,
                self.entrance.tls if self.entrance else None,
            )
        if self.member is None:
            self.fabric.expect()

    def tick(self, files: bool) -> None:
        """Time passes; files: look for new certificates, too."""
        step = self.pulse.step
        step("repairing and moving", self.fabric.tick)
        if self.entrance:
            step("ending idle connections", self.entrance.tick)
        if files:
            step("looking for new certificates", self.follow_files)
        step("reporting", self.reporter.tick)
        self.pulse.round()

    def hang_up(self) -> None:
        """SIGHUP: read build, certificates and tokens again; what is bad is only reported."""
        for what, do in (
            ("reading the build again", self._reload),
            ("reading certificates again", partial(self.follow_files, now=True)),
            ("reading tokens again", self.api.read_tokens_again if self.api else lambda: None),
        ):
            self.pulse.step(what, do)

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

    def end(self, why: str) -> None:
        """Resign, and say so in a last line; why: the name of a signal."""
        self.pulse.notify("STOPPING=1")
        if self.member:
            self.resign()
        self.reporter.tick()  # what is still to be said comes before
        self.fabric.tell(ControllerEnded(why))
        self.reporter.finish()

    def _reload(self) -> None:
        """Read the build again and move the switches to it."""
        try:
            with self.actions.asked(HANGUP, "reload", str(self.folder)):
                self.mover.load(self.read(), by=HANGUP.name)
        except InputError as error:
            self.fabric.cannot_load(str(error))


def _api_socket(settings: Settings, tell: Callable[[Event], None]) -> Any:
    """A socket for the management API; None where there is to be none.

    Raises:
        InputError: the address was asked for, and cannot be used.
    """
    if settings.http is None:
        return None
    try:
        return management.opened(settings.http)
    except InputError as error:
        if settings.http_needed:
            raise
        problem = error.problems[0]
        tell(ApiClosed(str(settings.http), f"{problem.given}; {problem.todo}"))
        return None
