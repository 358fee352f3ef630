"""TLS from files that may change: contexts for new connections, and the names in certificates.

The listener for switches (`controller.switches.connections.listening`) uses the context of a
`TlsFiles`, and so does the client of the store (`controller.cluster.store`).
`controller.composition` calls `look` at intervals, and `has_new` more often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from math import inf
from operator import attrgetter
from pathlib import Path
from ssl import SSLCertVerificationError, cert_time_to_seconds
from time import monotonic, time
from typing import TYPE_CHECKING, Any, NamedTuple

from controller.settings import Tls
from controller.switches.connections.tls_faults import Span, TlsFaults, printable_name
from controller.switches.connections.tls_rehearsal import Peer, Rehearsal
from inventory.problems import InputError, Problem

CRL = b"-----BEGIN X509 CRL-----"
"""The first line of a revocation list."""
BOM = b"\xef\xbb\xbf"
"""What some editors put before a text in UTF-8."""
LONGEST_LOOK = 5.0
"""Seconds after which a look at the files that has not ended counts as a failure of a disk."""
LONGEST_REFUSAL = 60.0
"""Seconds after which refused files are judged again in any case: there may be thousands of
certificates."""
LONGEST_NAME = 255
"""The longest name in a certificate that may be a node's."""

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, CertificateRevocationList

_Stamp = tuple[tuple[int, int, int], ...]
"""Of each file the time of its last change, its size, and its inode."""


class _RevocationList(NamedTuple):
    """What counts of a revocation list."""

    end: float
    """Until when it is good, in seconds since the epoch."""
    serials: frozenset[int]
    """The serial numbers of the certificates that it revokes."""


class _Refusal(NamedTuple):
    """That files are worse than those in use, and until when they are not judged again."""

    signers: frozenset[str]
    """The authorities of switches that were known."""
    moment: float
    """When a time in the files or in those in use passes next, in seconds since the epoch."""
    end: float
    """When it ends in any case, as `monotonic` has it."""


NO_LIST = _RevocationList(inf, frozenset())
"""In place of the list of an authority without one."""


class TlsFiles:
    """The files of `Tls`, read again when they change.

    Args:
        tls: the files.
        shown_to: whom our certificate is shown to.
        of_build: the names of the nodes of the current build; None if any name may be one.

    Attributes:
        switches: the context of new connections of switches.
        store: the context of new connections to the store of a cluster of controllers.
        contents: what the files have of which these contexts were made, by field of `Tls`.
        expires: until when our certificate and the list are good, in seconds since the epoch.
        peers: until when the certificates of connected switches are good, by node.

    Raises:
        InputError: a file cannot be read or is not what it should be.
    """

    def __init__(
        self,
        tls: Tls,
        shown_to: Sequence[Peer] = ("switch",),
        of_build: Callable[[], Collection[str]] | None = None,
    ) -> None:
        self.tls, self._shown_to, self._of_build = tls, shown_to, of_build
        self.peers: dict[str, float] = {}
        self._lists: dict[tuple[str, ...], list[_RevocationList]] = {}
        """The revocation lists of each authority by its `issuer_words`, the newest last."""
        self._connections: Counter[str] = Counter()
        """How many connections each node has."""
        self._signers: dict[str, str] = {}
        """The name of the authority of each node's last certificate, as in messages. A switch that
        is away comes back with it."""
        self._last_stamp = _stamp(tls)
        """The stamp of the files at the last look."""
        self._stamp_when_read = self._last_stamp
        """The stamp of the files when they were read."""
        self._told_unusable = False
        """Whether it was told that the files cannot be used as they are."""
        self._refusal: _Refusal | None = None
        """The refusal of the files as they are; None if they were not found worse than those in
        use."""
        self._look: Future[bool] | None = None
        """Whether there are new contexts, while a thread looks; None between two looks."""
        self._look_start = 0.0
        """When that look began."""
        self._told_hanging = False
        """Whether it was told that it does not end."""
        self._must_read = False
        """Whether the next look reads the files in any case."""
        self._told_faults: frozenset[str] = frozenset()
        """What `new_faults` has returned and is still wrong."""
        self._faults: TlsFaults | None = None
        """What is wrong with the files in use; None before any are."""
        self._load()

    def _load(self) -> None:
        """Read all files.

        Raises:
            InputError: they cannot be used, or are worse than those in use.
        """
        stamp = _stamp(self.tls)
        switches, store = self.tls.context(), self.tls.client_context()
        contents = _contents(self.tls)
        lists = revocation_lists(self.tls.revoked) if self.tls.revoked else []
        # The file has the certificates of intermediate authorities, too.
        certificates = _certificates("tls_cert", self.tls.certificate)
        rehearsal = Rehearsal(self.tls)
        unread: tuple[Problem, ...] = ()
        try:
            authorities = _certificates("tls_ca", self.tls.authority)
        except InputError as error:  # OpenSSL takes more forms, and each has its peers
            unread, authorities = error.problems, _readable(rehearsal.authorities)
        faults = TlsFaults(
            self.tls, certificates, authorities, rehearsal, self._shown_to, lists, unread
        )
        ends = {
            "certificate": [faults.end()],
            "authority": [Span.of(authority).end for authority in authorities],
            "revocation list": [end for end in map(_end_of, lists) if end < inf],
        }
        if self._faults:
            self._judge(faults, self._faults)
        if _stamp(self.tls) != stamp:
            raise InputError.of(
                key="tls_cert",
                required="files that stay as they are while they are read",
                given="files that change",
                todo="wait until they are written",
            )
        left_out = self._faults.names() - faults.names() if self._faults else ()
        for node, signer in self._signers.copy().items():
            if signer in left_out:
                self._signers.pop(node, None)
        self.switches, self.store, self._faults = switches, store, faults
        self.expires = {file: min(moments) for file, moments in ends.items() if moments}
        self.contents = contents
        lists_of: dict[tuple[str, ...], list[_RevocationList]] = {}
        for crl in sorted(lists, key=attrgetter("last_update_utc")):
            serials = frozenset(entry.serial_number for entry in crl)
            lists_of.setdefault(_issuer_of(crl), []).append(_RevocationList(_end_of(crl), serials))
        self._lists = lists_of

    def _judge(self, faults: TlsFaults, before: TlsFaults) -> None:
        """Refuse files that are worse than those in use.

        Args:
            faults: their faults.
            before: the faults of those in use.

        Raises:
            InputError: they are.
        """
        now, signers = time(), self._known_signers()
        if worse := faults.worse_than(before, now, signers):
            moments = (*faults.moments(), *before.moments())
            moment = min((one for one in moments if one >= now), default=inf)
            end = monotonic() + LONGEST_REFUSAL
            self._refusal = _Refusal(signers, moment, end)
            raise InputError(worse)

    def _known_signers(self) -> frozenset[str]:
        """The names of the authorities of switches, as in messages.

        A switch that is away counts only if it is in the current build: else it is out of service.
        """
        signers = self._signers.copy()
        of_build = signers if self._of_build is None else self._of_build()
        expected = {*of_build, *self._connections.copy()}
        return frozenset(signer for node, signer in signers.items() if node in expected)

    def look(self, start: Callable[[Callable[[], bool]], Future[bool]], now: bool = False) -> None:
        """Begin to read the files if they have changed; `has_new` tells when that has ended.

        A disk may hang, and a list of 100,000 certificates takes .8 s.

        Args:
            start: runs a function in a thread.
            now: whether to read them in any case.
        """
        self._must_read |= now
        # A look that hangs is given up only for a SIGHUP: each one keeps a thread.
        if self._look is None or (now and self._told_hanging):
            now, self._must_read = self._must_read, False
            self._told_hanging, self._look_start = False, monotonic()
            self._look = start(partial(self._follow, now))

    def has_new(self) -> bool:
        """Whether a look that has ended since the last call found new files, which are in use.

        Raises:
            InputError: the new files cannot be used; raised once, and the old ones stay in use.
            OSError: a file could not be read.
        """
        if self._look is None:
            return False
        if self._look.done():
            look, self._look = self._look, None
            return look.result()
        if not self._told_hanging and monotonic() - self._look_start > LONGEST_LOOK:
            self._told_hanging = True
            raise OSError("a disk does not answer")
        return False

    def _follow(self, now: bool) -> bool:
        """Read the files if they have changed, but not while they are still changing.

        Args:
            now: whether to read them in any case.

        Returns:
            Whether there are new contexts.
        """
        before, self._last_stamp = self._last_stamp, _stamp(self.tls)
        is_still_changing = self._last_stamp != before
        if is_still_changing:  # files that come back are told anew
            self._told_unusable, self._refusal = False, None
        if not now and (self._last_stamp == self._stamp_when_read or is_still_changing):
            return False
        if not now and self._is_refused():
            return False
        try:
            self._load()
        except (InputError, OSError):
            # Read again at the next call: it may have been for want of a descriptor.
            if not now and self._told_unusable:
                return False
            self._told_unusable = True
            raise
        self._stamp_when_read = self._last_stamp
        return True

    def _is_refused(self) -> bool:
        """Whether the files were found worse than those in use, and still would be."""
        refusal = self._refusal
        return (
            refusal is not None
            and refusal.signers == self._known_signers()
            and time() <= refusal.moment
            and monotonic() < refusal.end
        )

    def new_faults(self, now: float) -> list[Problem]:
        """What is wrong with the files in use, of which each fault is returned once.

        Args:
            now: the seconds since the epoch.
        """
        problems = self._faults.problems(now) if self._faults else []
        told, self._told_faults = self._told_faults, frozenset(map(str, problems))
        return [problem for problem in problems if str(problem) not in told]

    def _list_for(self, certificate: Mapping[str, Any], now: float) -> _RevocationList:
        """The revocation list that counts for a certificate, as in OpenSSL.

        Of those of its authority this is the newest that is still good; else the newest of all.
        """
        lists = self._lists.get(issuer_words(certificate), [NO_LIST])
        return ([one for one in lists if one.end >= now] or lists)[-1]

    def has_revoked(self, certificate: Mapping[str, Any], now: float) -> bool:
        """Whether the revocation lists name a certificate, as `SSLSocket.getpeercert` has it.

        Args:
            certificate: the certificate.
            now: the seconds since the epoch.
        """
        serial = int(certificate.get("serialNumber", "0"), 16)
        return serial in self._list_for(certificate, now).serials

    def fault(self, certificate: Mapping[str, Any], now: float) -> str:
        """Why a certificate is refused that a finished handshake has accepted; "" if it is not.

        OpenSSL does not look at the certificate of a session that is resumed (TLS 1.2), and a
        handshake ends with the lists with which it began.

        Args:
            certificate: as `SSLSocket.getpeercert` has it.
            now: the seconds since the epoch.
        """
        start, end = certificate.get("notBefore"), certificate.get("notAfter")
        if start and now < cert_time_to_seconds(start):
            return "its certificate is refused: certificate is not yet valid"
        if end and cert_time_to_seconds(end) < now:
            return "its certificate is refused: certificate has expired"
        if self.has_revoked(certificate, now):
            return "its certificate is refused: certificate revoked"
        if self._list_for(certificate, now).end < now:
            return "its certificate is refused: CRL has expired"
        return ""

    def add_connection(self, certificate: Mapping[str, Any]) -> None:
        """Count a connection whose peer has shown this certificate.

        Args:
            certificate: as `SSLSocket.getpeercert` has it.
        """
        nodes = self.nodes(certificate)
        self._signers |= dict.fromkeys(nodes, printable_name(issuer_words(certificate)))
        end = certificate.get("notAfter")
        if end:
            self._connections.update(nodes)
            self.peers |= dict.fromkeys(nodes, float(cert_time_to_seconds(end)))

    def remove_connection(self, certificate: Mapping[str, Any]) -> None:
        """Count a connection with this certificate no more; its peer may have another one."""
        for node in self.nodes(certificate):
            self._connections[node] -= 1
            if self._connections[node] < 1:
                del self._connections[node]
                self.peers.pop(node, None)

    def nodes(self, certificate: Mapping[str, Any]) -> frozenset[str]:
        """The nodes that a certificate names, by the pattern of the settings.

        A name that is not printable, or longer than a host's (RFC 1035, §2.3.4), is no node's: it
        would stand in the log.
        """
        start, _, end = self.tls.names.partition("{node}")
        return frozenset(
            name[len(start) : len(name) - len(end)]
            for name in names(certificate)
            if name.startswith(start) and name.endswith(end) and len(name) > len(start + end)
            if name.isprintable() and len(name) <= LONGEST_NAME
        )


def issuer_words(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts of the name of a certificate's authority, in order, without their types.

    Args:
        certificate: as `SSLSocket.getpeercert` has it.
    """
    return tuple(value for parts in certificate.get("issuer", ()) for _, value in parts)


def _end_of(crl: CertificateRevocationList) -> float:
    """Until when a list is good, in seconds since the epoch."""
    return Span.of_list(crl).end


def _issuer_of(crl: CertificateRevocationList) -> tuple[str, ...]:
    """The name of a list's authority, as `issuer_words` has it."""
    return tuple(str(part.value) for part in crl.issuer)


def names(certificate: Mapping[str, Any]) -> frozenset[str]:
    """The names in a certificate as `SSLSocket.getpeercert` has it.

    They are the DNS names of its subjectAltName; without any, the common name of its subject.
    `ovs-pki` appends ` id:` and a unique text to names; both are cut off.
    """
    named = [name for kind, name in certificate.get("subjectAltName", ()) if kind == "DNS"]
    if not named:
        subject = (pair for part in certificate.get("subject", ()) for pair in part)
        named = [value for key, value in subject if key == "commonName"]
    return frozenset(name.partition(" id:")[0] for name in named)


ALERTS = {
    "CERTIFICATE_EXPIRED": "it has expired",
    "CERTIFICATE_REVOKED": "it was revoked",
    "UNKNOWN_CA": "its authority is not known there, or may not sign it",
    "UNSUPPORTED_CERTIFICATE": "it is not for servers, or its authority is not for such ones",
    "DECRYPT_ERROR": "it does not have the signature of its authority there",
    "ACCESS_DENIED": "its owner may not connect",
    "BAD_CERTIFICATE": "it is bad, not for this, not valid yet, or lacks the name expected there",
    "CERTIFICATE_UNKNOWN": "without saying why",
    "CERTIFICATE_REQUIRED": "none has come",
}
"""Why a peer refuses our certificate, by the end of the name that OpenSSL has for its alert."""
NONE_SHOWN = "it asks for a certificate, and tls_cert names none"
"""What is said of such alerts if we have none."""


def handshake_fault(error: OSError, has_certificate: bool = True) -> str:
    """Why a TLS handshake has failed, in words that say whose certificate is at fault.

    Args:
        error: the failure.
        has_certificate: whether we have a certificate.
    """
    if isinstance(error, SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    reason = getattr(error, "reason", None) or str(error)
    for alert, why in ALERTS.items():
        if reason.endswith(f"ALERT_{alert}"):
            return f"it refuses our certificate: {why}" if has_certificate else NONE_SHOWN
    return str(reason)


def revocation_lists(file: Path) -> list[CertificateRevocationList]:
    """The revocation lists in a PEM file (RFC 5280, §5.1).

    Raises:
        InputError: there is none, or it cannot be read.
    """
    from cryptography.x509 import InvalidVersion, load_pem_x509_crl

    try:
        text = file.read_bytes()
        lists = [load_pem_x509_crl(CRL + part) for part in text.split(CRL)[1:]]
        # OpenSSL, which reads the file too, would take a certificate in it as an authority.
        if not lists or text.count(b"-----BEGIN ") != len(lists):
            raise ValueError
    except (OSError, ValueError, InvalidVersion) as error:
        raise InputError.of(
            file=str(file),
            key="tls_crl",
            required="revocation lists in PEM, and nothing else",
            given=getattr(error, "strerror", None) or "something else",
        ) from error
    return lists


def _certificates(key: str, file: Path) -> list[Certificate]:
    """The certificates of a file; one at least.

    Args:
        key: the option that names the file.
        file: the file.

    Raises:
        InputError: one is in a form that OpenSSL takes, but not in PEM's usual one (RFC 7468, §5),
            or a part of it is damaged.
    """
    from cryptography.x509 import InvalidVersion, load_pem_x509_certificates

    try:
        # OpenSSL reads a mark in the middle of a line as part of a comment.
        lines = [
            line
            for line in file.read_bytes().split(b"\n")
            if b"-----BEGIN " not in line or line.removeprefix(BOM).startswith(b"-----BEGIN ")
        ]
        certificates = load_pem_x509_certificates(b"\n".join(lines))
        for certificate in certificates:
            _ = certificate.subject, certificate.issuer  # are not read before
    except (ValueError, InvalidVersion) as error:
        raise InputError.of(
            file=str(file),
            key=key,
            required="a certificate that begins with BEGIN CERTIFICATE",
            given="one that is damaged, or in another form, such as BEGIN TRUSTED CERTIFICATE",
            todo="write it by `openssl x509 -in FILE`",
        ) from error
    return certificates


def _readable(certificates: Iterable[bytes]) -> list[Certificate]:
    """The certificates, given in DER, that cryptography can read; OpenSSL takes others, too."""
    from cryptography.x509 import InvalidVersion, load_der_x509_certificate

    readable = []
    for der in certificates:
        with suppress(ValueError, InvalidVersion):
            certificate = load_der_x509_certificate(der)
            _ = certificate.subject, certificate.issuer  # are not read before
            readable.append(certificate)
    return readable


def _contents(tls: Tls) -> dict[str, bytes]:
    """What the files of our key, our certificate and the authority have, by field of `Tls`."""
    files = {"key": tls.key, "certificate": tls.certificate, "authority": tls.authority}
    return {field: file.read_bytes() for field, file in files.items()}


def _stamp(tls: Tls) -> _Stamp:
    """The stamp of the files, which changes when a file does; zeros for a missing file."""
    stamps = []
    for file in filter(None, (tls.key, tls.certificate, tls.authority, tls.revoked)):
        try:
            status = file.stat()
            stamps.append((status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError:
            stamps.append((0, 0, 0))
    return tuple(stamps)
