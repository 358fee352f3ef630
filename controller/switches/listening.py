"""The listener for switches: TLS with client certificates, or plain text."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any

from controller.switches.framework import Framework

BACKLOG = 4096
"""Connections that may wait to be accepted: all switches of a fabric connect at once."""
HANDSHAKE = 10.0
"""Seconds that a TLS handshake may take."""


def use(
    framework: Framework, context: ssl.SSLContext | None, refused: Callable[[str, str], None]
) -> None:
    """Make the framework listen with our listener.

    Its own TLS server forgets its certificates after the first connection (Ryu 4.34), and lets 50
    connections wait.

    Args:
        framework: before its apps are started.
        context: of TLS; None for plain text.
        refused: called with the peer's host and the reason if the handshake fails.
    """
    import eventlet
    from eventlet.green.ssl import GreenSSLSocket

    class Listener:
        """Our listener, in place of the framework's StreamServer."""

        def __init__(self, address: tuple[str, int], handle: Callable[[Any, Any], None]) -> None:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            self.server = eventlet.listen(address, family=family, backlog=BACKLOG)
            self.handle = handle

        def serve_forever(self) -> None:
            """Accept connections for ever; each has its own thread from the start."""
            while True:
                sock, address = self.server.accept()
                eventlet.spawn(self._serve, sock, address)

        def _serve(self, sock: Any, address: Any) -> None:
            if context is not None:
                sock.settimeout(HANDSHAKE)
                try:
                    sock = GreenSSLSocket(sock, server_side=True, _context=context)
                except OSError as error:  # ssl.SSLError, timeouts and resets are
                    sock.close()
                    refused(str(address[0]), getattr(error, "reason", None) or str(error))
                    return
            self.handle(sock, address)

    framework.controller.StreamServer = Listener  # type: ignore[attr-defined]
