"""Handshakes in memory that show our certificate to peers that trust our authorities.

The peers are switches, and the store of several controllers, whose client we are. OpenSSL itself
says whether they would refuse us, and whether we would refuse the certificates that an authority
signs for switches. What that means is in `controller.switches.connections.tls_faults`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
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
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from controller.settings import Tls

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

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
        self._entrance = tls.context(clients=False)
        """A context that takes the switches whose certificates have a chain."""
        self._entrance.verify_mode = CERT_REQUIRED
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
        return _handshake(client, server)

    def refusal_of_switch(self, authority: Certificate) -> CertificateRefusal:
        """How we refuse a switch whose certificate an authority has signed.

        It is shown one with another signature, which OpenSSL checks last. For authorities with keys
        of rare kinds there is none: then it is not refused.
        """
        from cryptography.exceptions import UnsupportedAlgorithm

        with suppress(TypeError, UnsupportedAlgorithm, ValueError):
            client = SSLContext(PROTOCOL_TLS_CLIENT)
            client.check_hostname, client.verify_mode = False, CERT_NONE
            shown = _unsigned(authority)
            descriptor = os.memfd_create("certificate of a switch")
            try:
                os.pwrite(descriptor, shown, 0)
                client.load_cert_chain(f"/proc/self/fd/{descriptor}")
            finally:
                os.close(descriptor)
            return _handshake(client, self._entrance)
        return CertificateRefusal()


def _handshake(client: SSLContext, server: SSLContext) -> CertificateRefusal:
    """How one of them refuses the certificate of the other; not at all if both accept it."""
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


def _unsigned(authority: Certificate) -> bytes:
    """A certificate as of an authority, but with the signature of another key; then its own key.

    OpenSSL takes only signatures of the kind of the authority's key for its own.

    Raises:
        TypeError: the authority's key is of a rare kind.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256

    keys, of_authority = _keys(), authority.public_key()
    own = keys[ec.EllipticCurvePublicKey]
    signers = [key for kind, key in keys.items() if isinstance(of_authority, kind)]
    if not signers:
        raise TypeError(of_authority)
    made = x509.CertificateBuilder(authority.subject, x509.Name([]), own.public_key(), 1)
    # A moment is enough: OpenSSL looks at times last, too.
    start = authority.not_valid_before_utc
    made = made.not_valid_before(start).not_valid_after(start)
    with suppress(x509.DuplicateExtension, x509.ExtensionNotFound, ValueError):
        its = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        named = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(its.value)
        made = made.add_extension(named, critical=False)
    is_rsa = isinstance(signers[0], rsa.RSAPrivateKey)
    how = padding.PSS(padding.MGF1(SHA256()), padding.PSS.DIGEST_LENGTH) if is_rsa else None
    hashed = SHA256() if is_rsa or signers[0] is own else None
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    key: bytes = own.private_bytes(pem, form, serialization.NoEncryption())
    return made.sign(signers[0], hashed, rsa_padding=how).public_bytes(pem) + key


@cache
def _keys() -> dict[type, Any]:
    """A key for each kind of keys that authorities have."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa

    return {
        rsa.RSAPublicKey: rsa.generate_private_key(65537, 1024),  # noqa: S505  nobody trusts it
        ec.EllipticCurvePublicKey: ec.generate_private_key(ec.SECP256R1()),
        ed25519.Ed25519PublicKey: ed25519.Ed25519PrivateKey.generate(),
        ed448.Ed448PublicKey: ed448.Ed448PrivateKey.generate(),
    }
