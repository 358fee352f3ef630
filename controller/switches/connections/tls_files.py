"""TLS from files that may change: contexts for new connections, and the names in certificates."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from controller.settings import Tls
from inventory.problems import InputError

SEQUENCE, UTC_TIME, GENERALIZED_TIME = 0x30, 0x17, 0x18
"""Tags of ASN.1 in DER (X.690, §8)."""

_Stamp = tuple[tuple[int, int, int], ...]


class TlsFiles:
    """The files of `Tls`, read again when they change.

    switches, api: the contexts of new connections. revoked: serial numbers that the revocation list
    names.

    Raises:
        InputError: a file cannot be read or is not what it should be.
    """

    def __init__(self, tls: Tls) -> None:
        self.tls = tls
        self._seen = self._read = _stamp(tls)
        self._load()

    def _load(self) -> None:
        switches, api = self.tls.context(), self.tls.context(clients=False)
        revoked = revoked_serials(self.tls.revoked) if self.tls.revoked else frozenset()
        self.switches, self.api, self.revoked = switches, api, revoked

    def follow(self, now: bool = False) -> bool:
        """Read the files if they have changed, and not since the last call; or at once if `now`.

        Returns whether there are new contexts.

        Raises:
            InputError: the new files cannot be used; told once, and the old contexts stay.
        """
        before, self._seen = self._seen, _stamp(self.tls)
        if not now and (self._seen == self._read or self._seen != before):
            return False
        self._read = self._seen
        self._load()
        return True

    def nodes(self, certificate: Mapping[str, Any]) -> frozenset[str]:
        """The nodes that a certificate names, by the pattern of the settings."""
        start, _, end = self.tls.names.partition("{node}")
        return frozenset(
            name[len(start) : len(name) - len(end)]
            for name in names(certificate)
            if name.startswith(start) and name.endswith(end) and len(name) > len(start + end)
        )


def names(certificate: Mapping[str, Any]) -> frozenset[str]:
    """The names in a certificate as `SSLSocket.getpeercert` has it.

    They are the DNS names of its subjectAltName; without any, the common name of its subject. Of
    ` id:` and what follows, with which `ovs-pki` makes names unique, nothing is taken.
    """
    found = [name for kind, name in certificate.get("subjectAltName", ()) if kind == "DNS"]
    if not found:
        subject = (pair for part in certificate.get("subject", ()) for pair in part)
        found = [value for key, value in subject if key == "commonName"]
    return frozenset(name.partition(" id:")[0] for name in found)


def revoked_serials(file: Path) -> frozenset[int]:
    """The serial numbers in the revocation lists of a PEM file (RFC 5280, §5.1).

    Raises:
        InputError: there is none, or it cannot be read.
    """
    begin, end = "-----BEGIN X509 CRL-----", "-----END X509 CRL-----"
    try:
        lists = [part.partition(end)[0] for part in file.read_text().split(begin)[1:]]
        return frozenset(serial for text in lists for serial in _serials(b64decode(text)))
    except (OSError, ValueError, IndexError) as error:
        raise InputError.of(
            file=str(file),
            key="--tls-crl",
            required="revocation lists in PEM",
            given=getattr(error, "strerror", None) or "something else",
        ) from error


def _serials(der: bytes) -> Iterator[int]:
    """The serial number of each entry of `revokedCertificates`, which follows one or two times."""
    ((_, whole),) = _values(der)
    ((_, listed), *_) = _values(whole)
    timed = False
    for tag, value in _values(listed):
        if tag == SEQUENCE and timed:
            for _, entry in _values(value):
                yield int.from_bytes(next(_values(entry))[1])
        timed |= tag in (UTC_TIME, GENERALIZED_TIME)


def _values(der: bytes) -> Iterator[tuple[int, bytes]]:
    """The tag and the content of values that stand one after the other."""
    place = 0
    while place < len(der):
        tag, length = der[place], der[place + 1]
        place += 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(der[place : place + size])
            place += size
        if place + length > len(der):
            raise ValueError("a value is cut off")
        yield tag, der[place : place + length]
        place += length


def _stamp(tls: Tls) -> _Stamp:
    """What changes when a file does."""
    found = []
    for file in filter(None, (tls.key, tls.certificate, tls.authority, tls.revoked)):
        try:
            status = file.stat()
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError:
            found.append((0, 0, 0))
    return tuple(found)
