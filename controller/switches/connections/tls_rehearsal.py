"""Handshakes in memory that show our certificate to peers that trust our authorities.

The peers are switches, and the store of several controllers, whose client we are. OpenSSL itself
says whether they would refuse us. What that means is in `controller.switches.connections.
tls_faults`.
"""

from __future__ import annotations

from contextlib import suppress
from ssl import (
    CERT_NONE,
    CERT_REQUIRED,
    MemoryBIO,
    SSLCertVerificationError,
    SSLContext,
    SSLError,
    SSLWantReadError,
)
from typing import Literal, NamedTuple

from controller.settings import Tls

Peer = Literal["switch", "store"]
"""Who is shown our certificate: a client or a server."""
ROUNDS = 4
"""Most times that both sides of a handshake in memory take turns; three are enough for TLS 1.3."""


class CertificateRefusal(NamedTuple):
    """How a peer refuses our certificate."""

    number: int = 0
    """The number that OpenSSL has for it; 0 for other faults, or if it does not refuse it."""
    words: str = ""
    """What OpenSSL says; "" if it does not refuse it."""


class Rehearsal:
    """Handshakes with the files as they were when this was made.

    Args:
        tls: the files.
    """

    def __init__(self, tls: Tls) -> None:
        server, client = tls.context(clients=False), tls.client_context()
        client.check_hostname, client.verify_mode = False, CERT_NONE
        self._ours: dict[Peer, SSLContext] = {"switch": server, "store": client}
        """Contexts that show our certificate, and take any peer."""
        switch, store = tls.client_context(), tls.context(clients=False)
        switch.check_hostname, store.verify_mode = False, CERT_REQUIRED
        self._peers: dict[Peer, SSLContext] = {"switch": switch, "store": store}
        """Contexts of peers that trust `tls_ca`. They are as lenient as a peer may be: they take
        weak keys, and do not look at our name."""
        for peer in self._peers.values():
            peer.set_ciphers("DEFAULT:@SECLEVEL=0")
        self.authorities = switch.get_ca_certs(binary_form=True)
        """What OpenSSL takes as authorities, in DER: they may sign certificates."""

    def refusal(self, peer: Peer) -> CertificateRefusal:
        """How such a peer refuses our certificate now."""
        contexts = {"ours": self._ours[peer], "theirs": self._peers[peer]}
        client, server = ("theirs", "ours") if peer == "switch" else ("ours", "theirs")
        there, here = MemoryBIO(), MemoryBIO()
        sides = (
            contexts[client].wrap_bio(there, here),
            contexts[server].wrap_bio(here, there, server_side=True),
        )
        try:
            for side in sides * ROUNDS:
                with suppress(SSLWantReadError):
                    side.do_handshake()
        except SSLCertVerificationError as error:
            return CertificateRefusal(error.verify_code, error.verify_message)
        except SSLError as error:
            return CertificateRefusal(0, error.reason or str(error))
        return CertificateRefusal()
