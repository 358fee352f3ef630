"""Handshakes in memory that show our certificate to peers that trust our authorities.

The peers are switches, and the store of several controllers, whose client we are. OpenSSL itself
says whether they would refuse us. What that means is in `controller.switches.connections.
tls_faults`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from ssl import (
    CERT_NONE,
    CERT_REQUIRED,
    PROTOCOL_TLS_CLIENT,
    PROTOCOL_TLS_SERVER,
    MemoryBIO,
    SSLCertVerificationError,
    SSLContext,
    SSLError,
    SSLWantReadError,
    TLSVersion,
    VerifyFlags,
)
from typing import Literal, NamedTuple, get_args

from controller.settings import Tls

Peer = Literal["switch", "store"]
"""Who is shown our certificate: a client or a server."""
Trust = Literal["file", "roots", "own"]
"""What a peer trusts: all of the file of `tls_ca`, the roots in it, or our certificate itself, with
those that came with it."""
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

    Attributes:
        authorities: what OpenSSL takes as authorities, in DER: they may sign certificates.
    """

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        server, client = tls.context(clients=False), tls.client_context()
        client.check_hostname, client.verify_mode = False, CERT_NONE
        self._ours: dict[Peer, SSLContext] = {"switch": server, "store": client}
        """Contexts that show our certificate, and take any peer."""
        self._peers: dict[tuple[Peer, Trust], SSLContext] = {}
        """Contexts of peers."""
        for peer in get_args(Peer):
            self._peers[peer, "file"] = context = self._peer(peer)
            context.load_verify_locations(tls.authority)
        self.authorities = self._peers["switch", "file"].get_ca_certs(binary_form=True)

    def add_peers(self, trust: Trust, certificates: Iterable[bytes]) -> None:
        """Add peers that trust these certificates, in DER; none without any."""
        if trusted := b"".join(certificates):
            for peer in get_args(Peer):
                self._peers[peer, trust] = context = self._peer(peer)
                context.load_verify_locations(cadata=trusted)
                if trust == "own":
                    context.verify_flags |= VerifyFlags.VERIFY_X509_PARTIAL_CHAIN

    def _peer(self, peer: Peer) -> SSLContext:
        """A context of a peer that trusts nobody yet.

        It is as lenient as one may be: it takes weak keys, and does not look at our name.
        """
        context = SSLContext(PROTOCOL_TLS_CLIENT if peer == "switch" else PROTOCOL_TLS_SERVER)
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = TLSVersion.TLSv1_2
        context.check_hostname, context.verify_mode = False, CERT_REQUIRED
        if peer == "store":  # it has to show one, at which we do not look
            files = self._tls.certificate, self._tls.key
            context.load_cert_chain(*files, password=lambda: b"")
        return context

    def refusal(
        self, peer: Peer, trust: Trust = "file", by: Rehearsal | None = None
    ) -> CertificateRefusal:
        """How such a peer refuses our certificate now; not at all if there is none.

        Args:
            peer: the peer.
            trust: what it trusts.
            by: whose peer it is, if it is another's than ours.
        """
        theirs = (by or self)._peers.get((peer, trust))
        if theirs is None:
            return CertificateRefusal()
        client, server = self._ours[peer], theirs
        if peer == "switch":
            client, server = server, client
        there, here = MemoryBIO(), MemoryBIO()
        sides = client.wrap_bio(there, here), server.wrap_bio(here, there, server_side=True)
        try:
            for side in sides * ROUNDS:
                with suppress(SSLWantReadError):
                    side.do_handshake()
        except SSLCertVerificationError as error:
            return CertificateRefusal(error.verify_code, error.verify_message)
        except SSLError as error:
            return CertificateRefusal(0, error.reason or str(error))
        return CertificateRefusal()
