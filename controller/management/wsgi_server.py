"""The web server of the API, on the framework's hub, in the thread that serves the switches."""

from __future__ import annotations

import logging
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

from controller.settings import Address

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

REQUESTS_AT_ONCE = 64
"""Connections that are served at the same time."""
CLIENT_PATIENCE = 30.0
"""Most seconds that a client may be silent."""


def serve(address: Address, application: WSGIApplication, context: ssl.SSLContext | None) -> None:
    """Listen, and serve in a thread of the hub. The address must be free."""
    import eventlet
    import eventlet.wsgi
    from eventlet.green.ssl import GreenSSLSocket

    class Protocol(eventlet.wsgi.HttpProtocol):  # type: ignore[misc]
        """A failed handshake, or a client that disconnects, ends a connection without an event."""

        def handle(self) -> None:
            with suppress(OSError):
                super().handle()

    family = eventlet.green.socket.AF_INET6 if ":" in address.host else None
    options = {"family": family} if family else {}
    listener = eventlet.listen((address.host, address.port), backlog=REQUESTS_AT_ONCE, **options)
    if context is not None:
        listener = GreenSSLSocket(
            listener, server_side=True, do_handshake_on_connect=False, _context=context
        )
    quiet = logging.Logger("polarfab.http", logging.CRITICAL)
    eventlet.spawn(
        eventlet.wsgi.server,
        listener,
        application,
        log=quiet,
        log_output=False,
        debug=False,
        protocol=Protocol,
        max_size=REQUESTS_AT_ONCE,
        socket_timeout=CLIENT_PATIENCE,
        url_length_limit=4096,
    )
