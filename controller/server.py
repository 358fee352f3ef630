"""Running the controller: check the port, start the framework, stop on a signal."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from controller.app import app_class
from controller.composition import Controller
from controller.settings import Settings
from controller.switches.current import Current
from controller.switches.framework import Framework

SIGNAL_POLL = 0.1
"""Seconds between two checks for a signal."""


def serve(
    framework: Framework,
    read: Callable[[], Current],
    settings: Settings,
    write: Callable[[str], None],
    folder: Path,
) -> None:
    """Program switches until SIGINT or SIGTERM; the arguments are of `Controller.from_settings`.

    Raises:
        InputError: insecure settings, files that cannot be read or written, too few open files, or
        an address where we cannot listen.
        RuntimeError: the controller has stopped working.
    """
    settings.check()
    framework.quieten()
    framework.configure(settings.listen.host, settings.listen.port)
    where = f"{framework.name} listens on {'TLS, ' if settings.tls else ''}{settings.listen}"
    controller = Controller.from_settings(framework, read, settings, write, folder, where)
    stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: stop.append(received))
    manager = framework.app_manager.AppManager.get_instance()
    manager.load_apps([framework.ofp_event.__name__.replace("ofp_event", "ofp_handler")])
    manager.instantiate(app_class(framework), controller=controller)
    controller.begin()
    services = manager.instantiate_apps()
    while not stop:
        if all(getattr(service, "dead", False) for service in services):
            raise RuntimeError(f"{framework.name} stopped listening")
        controller.pulse.look()
        framework.hub.sleep(SIGNAL_POLL)
    controller.end(signal.Signals(stop[0]).name)
