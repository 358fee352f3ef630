"""The web server of the API, on the framework's hub, in the thread that serves the switches."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from controller.settings import Address
from controller.switches.connections.listening import HalfOpen, accept, listen_at, shut_down
from controller.switches.connections.tls_files import TlsFiles
from inventory.problems import InputError, install_extra

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

NEEDED = ("werkzeug", "prometheus_client")
REQUESTS_AT_ONCE = 64
"""Connections that may wait for their client at the same time; then the oldest gives way."""
MOST_REQUESTS = 2 * REQUESTS_AT_ONCE
"""Connections that are served at the same time."""
CLIENT_PATIENCE = 10.0
"""Most seconds that a client may be silent."""


class Door:
    """The listener of the web server: a slow client gives way when others come."""

    def __init__(self, listener: Any, tls: TlsFiles | None) -> None:
        self._listener, self._tls, self.family = listener, tls, listener.family
        self._idle = HalfOpen(REQUESTS_AT_ONCE)
        self._sockets: dict[Any, Any] = {}

    def getsockname(self) -> Any:
        """The address where it listens."""
        return self._listener.getsockname()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def accept(self) -> tuple[Any, Any]:
        """The next connection; its TLS handshake comes with its first bytes."""
        from eventlet.green.ssl import GreenSSLSocket

        sock, address = accept(self._listener)
        if self._tls is not None:
            sock = GreenSSLSocket(
                sock, server_side=True, do_handshake_on_connect=False, _context=self._tls.api
            )
        self._sockets[address[:2]] = sock
        self._wait(address[:2])
        return sock, address

    def left(self, address: Any) -> None:
        """A connection has ended."""
        self._idle.leave(address[:2])
        self._sockets.pop(address[:2], None)

    def serve(
        self, application: WSGIApplication, environ: WSGIEnvironment, start: StartResponse
    ) -> Iterable[bytes]:
        """Answer a request, which cannot be made to give way meanwhile."""
        address = environ["REMOTE_ADDR"], int(environ["REMOTE_PORT"])
        self._idle.leave(address)
        try:
            return application(environ, start)
        finally:
            self._wait(address)

    def _wait(self, address: Any) -> None:
        """A connection waits for its client; another one may have to end for it."""
        oldest = self._idle.enter(address)
        if oldest is not None and (sock := self._sockets.pop(oldest, None)):
            shut_down(sock)


def listener(address: Address) -> Any:
    """A socket that listens for requests, before anything else is started.

    Raises:
        InputError: packages are missing, the port is in use, or it is no address of this machine.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise InputError.of(
            key=address.key,
            required="the packages of the management API",
            given=f"no {' and no '.join(missing)} installed",
            todo=install_extra("http"),
        )
    return listen_at(address, REQUESTS_AT_ONCE)


def serve(listener: Any, application: WSGIApplication, tls: TlsFiles | None) -> Any:
    """Serve in a green thread, which is returned."""
    import eventlet
    import eventlet.wsgi

    door = Door(listener, tls)

    class Protocol(eventlet.wsgi.HttpProtocol):  # type: ignore[misc]
        """A failed handshake, or a client that disconnects, ends a connection without an event."""

        def handle(self) -> None:
            try:
                with suppress(OSError):
                    super().handle()
            finally:
                door.left(self.client_address)

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        return door.serve(application, environ, start)

    return eventlet.spawn(
        eventlet.wsgi.server,
        door,
        answer,
        log=logging.Logger("polarfab.http", logging.CRITICAL),
        log_output=False,
        debug=False,
        protocol=Protocol,
        max_size=MOST_REQUESTS,
        socket_timeout=CLIENT_PATIENCE,
        url_length_limit=4096,
    )
