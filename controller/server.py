"""Running the controller: check the port, start the framework, stop on a signal."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from controller import management
from controller.app import app_class
from controller.cluster import cluster_member
from controller.management.action_log import ActionLog, Actor
from controller.pulse import Pulse
from controller.reporter import Reporter
from controller.rollout.build_history import BuildHistory
from controller.rollout.move_journal import journalled
from controller.rollout.mover import Mover
from controller.settings import Settings
from controller.switches.connections import listening
from controller.switches.connections.file_limit import half_open_room
from controller.switches.connections.listening import Entrance, check_free
from controller.switches.connections.tls_files import TlsFiles
from controller.switches.current import Current
from controller.switches.events import ApiClosed, ControllerEnded, Event
from controller.switches.framework import Framework
from controller.switches.session import LiveFabric
from controller.upkeep.background import in_thread
from controller.upkeep.repair_keeper import Keeper
from controller.upkeep.rolling_audit import RollingAudit
from inventory.problems import InputError

SIGNAL_POLL = 0.1
"""Seconds between two checks for a signal."""

HANGUP = Actor("SIGHUP", "", "")
"""Who asks for the build of the folder: the one who may send a signal."""


def serve(
    framework: Framework,
    read: Callable[[], Current],
    settings: Settings,
    write: Callable[[str], None],
    folder: Path,
) -> None:
    """Program switches until SIGINT or SIGTERM; read returns the build, again at each SIGHUP.

    folder: where the build came from; a build applied over the API replaces it.

    Raises:
        InputError: insecure settings, files that cannot be read or written, too few open files, or
        an address where we cannot listen.
        RuntimeError: the controller has stopped working.
    """
    settings.check()
    fabric = LiveFabric(read(), framework.error_names, settings.foreign)
    keeper = Keeper(fabric, settings.duties, in_thread)
    if settings.audit:
        RollingAudit(fabric, settings.audit, lambda: keeper.change)
    tls = TlsFiles(settings.tls) if settings.tls else None
    entrance = Entrance(half_open_room(fabric.expected), tls, fabric.rejected)
    pulse = Pulse(fabric.tell)
    check_free(settings.listen)
    api = _api(settings, fabric.tell)
    reporter = Reporter(fabric, write, settings.as_json, settings.status_file)
    framework.quieten()
    framework.configure(settings.listen.host, settings.listen.port)
    listening.use(framework, entrance)
    how = "TLS, " if tls else ""
    reporter.start(f"{framework.name} listens on {how}{settings.listen}")

    stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: stop.append(received))

    manager = framework.app_manager.AppManager.get_instance()
    manager.load_apps([framework.ofp_event.__name__.replace("ofp_event", "ofp_handler")])
    actions = ActionLog(folder, fabric.tell)
    reporter.observers.append(actions.happened)
    history = BuildHistory(folder, settings.unverified)
    member, resign = None, None
    if settings.group:
        new_mover = partial(Mover, fabric, keeper.foresee, history=history, memory=keeper)
        member, resign = cluster_member.join(settings, new_mover, history, reporter.finish)
    mover = member.mover if member else journalled(fabric, keeper.foresee, history, keeper)

    def reload() -> None:
        with actions.asked(HANGUP, "reload", str(folder)):
            mover.load(read(), by=HANGUP.name)

    app = manager.instantiate(
        app_class(framework),
        reporter=reporter,
        reload=reload,
        member=member,
        entrance=entrance,
        pulse=pulse,
    )
    if api:
        app.api = management.start(
            api, settings, reporter, keeper, app.flush, mover, actions, pulse, tls
        )
    services = manager.instantiate_apps()
    if not member:
        fabric.expect()
    while not stop:
        if all(getattr(service, "dead", False) for service in services):
            raise RuntimeError(f"{framework.name} stopped listening")
        pulse.look()
        framework.hub.sleep(SIGNAL_POLL)
    pulse.notify("STOPPING=1")
    if resign:
        resign()
    fabric.tell(ControllerEnded(signal.Signals(stop[0]).name))
    reporter.finish()


def _api(settings: Settings, tell: Callable[[Event], None]) -> Any:
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
