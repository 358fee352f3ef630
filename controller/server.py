"""Running the controller: check the port, start the framework, stop on a signal."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from pathlib import Path

from compilers.build import Build
from controller.app import app_class
from controller.framework import Framework
from controller.report import Reporter
from controller.session import Current, Fabric, Programs
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


def parse_listen(text: str) -> tuple[str, int]:
    """HOST:PORT or [HOST]:PORT as a pair.

    Raises:
        InputError: it is neither.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if host and port.isascii() and port.isdigit() and 0 < int(port) < 65536:
        return host, int(port)
    raise InputError(
        Problem(
            key="--listen",
            required="HOST:PORT, a port from 1 to 65535",
            given=repr(text),
            todo="for example 127.0.0.1:6653",
        )
    )


def check_free(host: str, port: int) -> None:
    """Find out beforehand whether we can listen: the framework would say nothing.

    Raises:
        InputError: the port is in use, or the address is not this machine's.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise InputError(
            Problem(
                key="--listen",
                required="an address of this machine with a free port",
                given=f"{host}:{port} ({error.strerror or error})",
                todo="stop what listens there, or name another with --listen HOST:PORT",
            )
        ) from error


def serve(
    framework: Framework,
    fabric: Fabric,
    listen: tuple[str, int],
    write: Callable[[str], None],
    *,
    as_json: bool = False,
    status_file: Path | None = None,
) -> None:
    """Program switches until SIGINT or SIGTERM.

    Raises:
        InputError: we cannot listen there, or the status file cannot be written.
    """
    host, port = listen
    check_free(host, port)
    reporter = Reporter(fabric, write, as_json, status_file)
    framework.quieten()
    framework.configure(host, port)
    reporter.start(f"{framework.name} listens on {host}:{port}")

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
