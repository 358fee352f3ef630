"""Running the controller: check the port, start the framework, stop on a signal."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

from compilers.build import Build
from controller import listening
from controller.app import app_class
from controller.framework import Framework
from controller.report import Reporter
from controller.session import Current, Fabric, Programs
from controller.settings import Address, Settings
from inventory.problems import InputError, Problem

POLL = 0.1
"""Seconds between two looks at whether a signal has come."""


def fabric_of(build: Build, framework: Framework, programs: Programs | None = None) -> Fabric:
    """The sessions of a build's switches; programs are the OpenFlow target's unless given."""
    return Fabric(current_of(build, programs), framework.error_names)


def current_of(build: Build, programs: Programs | None = None) -> Current:
    """A build as the fabric takes it.

    Raises:
        InputError: the OpenFlow target cannot do what the build asks for.
    """
    from compilers.targets.openflow import Encoder

    chosen = Encoder(build) if programs is None else programs
    return Current(build.identity, build.wiring.names, chosen)


def check_free(address: Address) -> None:
    """Find out beforehand whether we can listen: the framework would say nothing.

    Raises:
        InputError: the port is in use, or the address is not this machine's.
    """
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except OSError as error:
        raise InputError(
            Problem(
                key=address.key,
                required="an address of this machine with a free port",
                given=f"{address} ({error.strerror or error})",
                todo=f"stop what listens there, or name another with {address.key} HOST:PORT",
            )
        ) from error


def serve(
    framework: Framework, fabric: Fabric, settings: Settings, write: Callable[[str], None]
) -> None:
    """Program switches until SIGINT or SIGTERM.

    Raises:
        InputError: settings that let strangers in, files that cannot be read or written, or an
            address where we cannot listen.
    """
    settings.check()
    context = settings.tls.context() if settings.tls else None
    check_free(settings.listen)
    reporter = Reporter(fabric, write, settings.as_json, settings.status_file)
    framework.quieten()
    framework.configure(settings.listen.host, settings.listen.port)
    listening.use(framework, context, fabric.barred)
    how = "TLS, " if context else ""
    reporter.start(f"{framework.name} listens on {how}{settings.listen}")

    stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: stop.append(received))

    manager = framework.app_manager.AppManager.get_instance()
    manager.load_apps([framework.ofp_event.__name__.replace("ofp_event", "ofp_handler")])
    manager.instantiate(app_class(framework), fabric=fabric, reporter=reporter)
    services = manager.instantiate_apps()
    while not stop:
        if all(getattr(service, "dead", False) for service in services):
            raise RuntimeError(f"{framework.name} stopped listening")
        framework.hub.sleep(POLL)
    reporter.tick()
