"""What is wrong with TLS files that can be read: times, signatures, authorities, uses. No I/O.

OpenSSL takes such files, and then each peer refuses us, or we refuse each peer. OpenSSL itself says
whether a peer would refuse us (`controller.switches.connections.tls_rehearsal`).
`controller.switches.connections.tls_files` reads the files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass, field
from math import inf
from time import gmtime, strftime
from typing import TYPE_CHECKING, NamedTuple

from controller.settings import Tls
from controller.switches.connections.tls_rehearsal import Peer, Rehearsal
from inventory.problems import Problem, first_names

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, CertificateRevocationList, Name

MOST_NAMED = 3
"""Most authorities that a fault names."""
SIGNED = "a certificate as its authority has signed it"
"""What each certificate should be."""
VALID = "a certificate that is valid now"
"""What it should be, too."""
SPOILT = "with the signature of one in use, which has other contents"
"""What is said if it is not."""
CHAIN = "the intermediate authorities that the certificate in use came with"
"""What the file of our certificate should have."""
SIGNER = "an authority that may sign certificates of switches"
"""What each of our authorities should be."""
OF_ANOTHER = 7
"""The number of OpenSSL for another signature than that of the authority of this name."""
FOUND_HERE = {
    OF_ANOTHER: "a signature may be of another authority of the same name (`_signature_fault`)",
    9: "what is not valid yet will be (`Span`)",
}
"""Numbers of OpenSSL for refusals that are found without it, and why."""
NO_CHAIN = {2, 18, 19, 20, 21}
"""Numbers of OpenSSL for refusals of a certificate whose authority the peer does not know."""
LOOKED_AT_LAST = {0, OF_ANOTHER, 9, 10}
"""Numbers of OpenSSL for what it says of a chain that is good but for signatures and times."""
NO_DETOUR = "no authority that keeps peers from a chain to a root"
"""What each of our authorities should be, too."""
DETOUR = "with which they refuse our certificate"
"""What is said if one is such an authority."""
ACCEPTED: dict[Peer, tuple[str, str]] = {
    "switch": (
        "a certificate that is accepted by peers that trust its authority",
        "that they refuse",
    ),
    "store": (
        "a certificate that the store accepts from its clients, too",
        "that it refuses if it asks for one",
    ),
}
"""For each peer what is required of our certificate, and what is said if the peer refuses it."""


class Span(NamedTuple):
    """When a certificate or a list is valid, in seconds since the epoch."""

    start: float
    """From when on."""
    end: float
    """Until when."""

    def fault(self, now: float) -> str:
        """Why it is not valid now; "" if it is."""
        if self.end < now:
            return f"expired on {_date(self.end)}"
        return f"is not valid before {_date(self.start)}" if now < self.start else ""

    @classmethod
    def of(cls, certificate: Certificate) -> Span:
        """When a certificate is valid."""
        start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return cls(start.timestamp(), end.timestamp())

    @classmethod
    def of_list(cls, crl: CertificateRevocationList) -> Span:
        """When a revocation list is valid."""
        end = crl.next_update_utc
        return cls(crl.last_update_utc.timestamp(), end.timestamp() if end else inf)


@dataclass(slots=True)
class TlsFaults:
    """The faults of files, which depend on the time."""

    tls: Tls
    """The files."""
    certificates: Sequence[Certificate]
    """Our certificate, and those of intermediate authorities in its file."""
    authorities: Sequence[Certificate]
    """The certificates of authorities that could be read."""
    rehearsal: Rehearsal
    """Says how peers refuse our certificate."""
    peers: Sequence[Peer]
    """Those that it is shown to."""
    lists: InitVar[Sequence[CertificateRevocationList]]
    """The revocation lists, which may be large and are not kept."""
    unread: Sequence[Problem] = ()
    """Why the file of the authorities could not be read here, though OpenSSL takes it."""
    _refusals: list[Problem] = field(init=False)
    """How peers refused our certificate when the files were read."""
    _accepting: frozenset[Peer] = field(init=False)
    """The peers that accepted it then by the roots alone."""
    _of_name: dict[str, list[Certificate]] = field(init=False, default_factory=dict)
    """Our authorities by their names, as in messages."""
    _has_roots: bool = field(init=False)
    """Whether some of the authorities have signed themselves."""
    _is_foreign: bool = field(init=False)
    """Whether its authority is none of ours: switches may know another one."""
    _broken: list[Problem] = field(init=False, default_factory=list)
    """What is wrong with the certificates at any time, as far as is known."""
    _issuers: dict[Certificate, list[Certificate]] = field(init=False)
    """Those that have signed each certificate; none if it has signed itself, or they are unknown.
    OpenSSL follows a chain up to such a certificate."""
    _lists_of: dict[str, list[Span]] = field(init=False, default_factory=dict)
    """The lists that each authority has signed, by its name."""
    _listed: dict[str, list[Span]] = field(init=False, default_factory=dict)
    """All lists, by the name of their authority, whether or not it has signed them."""

    def __post_init__(self, lists: Sequence[CertificateRevocationList]) -> None:
        candidates = tuple(dict.fromkeys((*self.certificates, *self.authorities)))
        for key, certificates, chain in (
            ("tls_cert", self.certificates, self.certificates[1:]),
            ("tls_ca", self.authorities, ()),
        ):
            self._broken += [
                self._unfit(key, SIGNED, f"one of {_name(certificate.subject)} {fault}")
                for certificate in certificates
                if (fault := _signature_fault(certificate, candidates, chain))
            ]
        self._issuers = {
            certificate: _issuers(certificate, candidates) for certificate in candidates
        }
        for authority in self.authorities:
            self._of_name.setdefault(_name(authority.subject), []).append(authority)
        roots = [*filter(_is_root, self.authorities)]
        self._has_roots = bool(roots)
        if not roots:
            self._add_useless("an authority that has signed itself", "signed by others")
        elif all(map(self._refusal_of_switch, self._of_name)):
            self._add_useless(SIGNER, "which may not")
        self._is_foreign = bool(self.authorities) and not any(
            root in self._chains(lambda _: True) for root in roots
        )
        self.rehearsal.add_peers("roots", map(_der, roots))
        own = {*self.certificates}
        tops = [one for one in self.certificates if own.isdisjoint(self._issuers[one])]
        self.rehearsal.add_peers("own", map(_der, tops))
        self._refusals, self._accepting = self._refusals_now(), self._accepting_now()
        for authority in self.authorities:
            signed = [Span.of_list(crl) for crl in lists if _has_signed(authority, crl)]
            self._lists_of.setdefault(_name(authority.subject), []).extend(signed)
        for crl in lists:
            self._listed.setdefault(_name(crl.issuer), []).append(Span.of_list(crl))

    def _refusals_now(self) -> list[Problem]:
        """How peers refuse our certificate now.

        A peer trusts the roots at least. It may have the other authorities of `tls_ca`, too: then
        it accepts what those that trust the roots alone do not, or the other way round.

        If our certificate is of another authority, it is judged by itself.
        """
        problems = []
        for peer in self.peers:
            number, words = self.rehearsal.refusal(peer)
            if words and self._has_roots and not self.rehearsal.refusal(peer, "roots").words:
                if peer == "switch" and number not in FOUND_HERE:
                    problems.append(self._unfit("tls_ca", NO_DETOUR, f"one {DETOUR}: {words}"))
                continue
            if number == OF_ANOTHER or (number in NO_CHAIN and self._is_foreign):
                number, words = self.rehearsal.refusal(peer, "own")
            if words and number not in FOUND_HERE:
                required, given = ACCEPTED[peer]
                problems.append(self._unfit("tls_cert", required, f"one {given}: {words}"))
        return problems

    def _accepting_now(self) -> frozenset[Peer]:
        """The peers that accept our certificate now by the roots alone."""
        return frozenset(
            peer
            for peer in self.peers
            if self._has_roots and not self.rehearsal.refusal(peer, "roots").words
        )

    def _add_useless(self, required: str, given: str) -> None:
        """Add the problem that all our authorities lack something; none if they are unknown."""
        if self.authorities:
            names = [_name(authority.subject) for authority in self.authorities]
            self._broken.append(
                self._unfit("tls_ca", required, f"{first_names(names, MOST_NAMED)}, {given}")
            )

    def _unfit(self, key: str, required: str, given: str) -> Problem:
        """A problem of certificates."""
        file = self.tls.certificate if key == "tls_cert" else self.tls.authority
        return Problem(file=str(file), key=key, required=required, given=given)

    def end(self) -> float:
        """Until when our certificate has a chain that is valid, in seconds since the epoch."""
        ends = sorted({Span.of(certificate).end for certificate in self._issuers}, reverse=True)
        valid = (end for end in ends if not self._chain_fault(end))
        return next(valid, Span.of(self.certificates[0]).end)

    def moments(self) -> Iterator[float]:
        """When what is wrong may change, in seconds since the epoch."""
        for certificate in self._issuers:
            yield from Span.of(certificate)
        for spans in self._listed.values():
            for span in spans:
                yield from span

    def _chains(self, may_be_in: Callable[[Certificate], bool]) -> list[Certificate]:
        """The certificates in chains from ours, ours first.

        Args:
            may_be_in: whether a certificate counts: those above it may be reached by it.
        """
        chains = [*filter(may_be_in, self.certificates[:1])]
        for certificate in chains:  # and those that are added to it
            above = filter(may_be_in, self._issuers[certificate])
            chains += [authority for authority in above if authority not in chains]
        return chains

    def _chain_fault(self, now: float) -> str:
        """Why our certificate has no chain that is valid at a time; "" if it has one."""
        valid = self._chains(lambda certificate: not Span.of(certificate).fault(now))
        if any(not self._issuers[certificate] for certificate in valid):
            return ""
        faults = _faults(map(Span.of, self._chains(lambda _: True)), now)
        return faults[0] if faults else ""

    def problems(self, now: float) -> list[Problem]:
        """What is wrong at a time, in seconds since the epoch."""
        problems = []
        # A file may have an authority that has expired beside a chain without it.
        if fault := self._chain_fault(now):
            problems.append(self._unfit("tls_cert", VALID, f"one that {fault}"))
        else:
            problems += self._refusals
        # An authority that has expired may stay beside the one that takes its place.
        faults = _faults(map(Span.of, self.authorities), now)
        if faults and len(faults) == len(self.authorities):
            problems.append(self._unfit("tls_ca", VALID, f"one that {faults[0]}"))
        problems += (*self.unread, *self._broken)
        if self.tls.revoked and self._lists_of and not self.covered(now):
            problems.append(self._uncovered([*self._lists_of], now))
        return problems

    def worse_than(
        self, before: TlsFaults, now: float, signers: Collection[str] = ()
    ) -> list[Problem]:
        """What is wrong with these files at a time that is not wrong with others.

        Args:
            before: the others.
            now: the time, in seconds since the epoch.
            signers: the names of the authorities of switches, as in messages; none if unknown.
        """
        # What was wrong when they were read may be hidden by what has expired since.
        had = (*before.problems(now), *before._refusals, *before._refusals_now())
        problems = [problem for problem in self.problems(now) if problem not in had]
        if self.rehearsal.refusal("switch", by=before.rehearsal).words:
            # With the authorities in use it is no better.
            problems = [problem for problem in problems if problem.required != NO_DETOUR]
        keys = {problem.key for problem in problems}
        # The certificates of an authority without a list are refused.
        without_list = before.covered(now) & (self._lists_of.keys() - self.covered(now))
        # So are those of one that only switches know, as far as it can be told without its key.
        unknown = {*signers} - before.names() - self.names()
        without_list |= {
            one for one in unknown if before.has_list(one, now) and not self.has_list(one, now)
        }
        if self.tls.revoked and without_list and "tls_crl" not in keys:
            problems.append(self._uncovered(sorted(without_list), now))
        if "tls_cert" not in keys and (forgotten := self._forgotten(before, now)):
            names_of = [_name(authority.subject) for authority in forgotten]
            given = f"a file without {first_names(names_of, MOST_NAMED)}"
            problems.append(self._unfit("tls_cert", CHAIN, given))
        if "tls_cert" not in {problem.key for problem in problems}:
            problems += [problem for problem in self._lost(before) if problem not in had]
        problems += [problem for problem in self._spoilt(before) if problem.key not in keys]
        if "tls_ca" not in keys and (powerless := self._powerless(before, signers)):
            why = self._refusal_of_switch(powerless[0])
            given = f"{first_names(powerless, MOST_NAMED)}, which may not any more: {why}"
            problems.append(self._unfit("tls_ca", SIGNER, given))
        if (
            problems and not before._serves_some(now, signers) and self._serves_some(now, signers)
        ):  # no switch is lost but by our certificate
            problems = [problem for problem in problems if problem.key == "tls_cert"]
        return problems

    def _serves_some(self, now: float, signers: Collection[str]) -> bool:
        """Whether there may be switches that can connect at a time.

        Args:
            now: the time, in seconds since the epoch.
            signers: the names of their authorities, as in messages; none if unknown.
        """
        return not self._chain_fault(now) and any(
            self._admits(name, now) for name in signers or self.names()
        )

    def _admits(self, name: str, now: float) -> bool:
        """Whether we may accept switches whose authority has this name at a time."""
        if self.tls.revoked and not self.has_list(name, now):
            return False
        # One that only they know may be below each of ours.
        authorities = self._of_name.get(name, self.authorities)
        is_valid = any(not Span.of(authority).fault(now) for authority in authorities)
        return is_valid and not (name in self._of_name and self._refusal_of_switch(name))

    def names(self) -> set[str]:
        """The names of our authorities, as in messages."""
        return {*self._of_name}

    def _powerless(self, before: TlsFaults, signers: Collection[str]) -> list[str]:
        """The names of authorities whose switches we refuse, and accept with other files.

        Those of switches may be intermediate ones that only they know. Then each of ours may be
        above them. So it may if none is known: all switches may be away.
        """
        common = self.names() & before.names()
        needed = {*signers} if signers and common >= {*signers} else common
        return [
            name
            for name in sorted(needed)
            if self._refusal_of_switch(name) and not before._refusal_of_switch(name)
        ]

    def _refusal_of_switch(self, name: str) -> str:
        """Why we refuse switches whose authority has a name; "" if we accept those of one."""
        words = ""
        for authority in self._of_name[name]:
            number, words = self.rehearsal.refusal_of_switch(authority)
            if number in LOOKED_AT_LAST:
                return ""
        return words

    def _forgotten(self, before: TlsFaults, now: float) -> list[Certificate]:
        """Intermediate authorities of other files that our certificate needs, and has not.

        One that has expired is not needed.
        """
        if not (self._is_foreign and self.rehearsal.refusal("switch").number in NO_CHAIN):
            return []
        tops = [one for one in self._chains(lambda _: True) if not self._issuers[one]]
        # If it came alone, peers got the others from `tls_ca`.
        came = (*before.certificates[1:], *(before.authorities if before._accepting else ()))
        return [
            authority
            for authority in dict.fromkeys(came)
            if not _is_root(authority) and Span.of(authority).end >= now
            if any(_issuers(one, [authority]) for one in tops)
        ]

    def _lost(self, before: TlsFaults) -> list[Problem]:
        """How peers refuse our certificate that accept that of other files by the roots alone.

        That others accept it, which trust all of the file, is no help to them. They may have the
        roots of either file. What they say of a certificate of another authority is no reason.
        """
        problems = []
        for peer in before._accepting | before._accepting_now():
            refusals = [
                self.rehearsal.refusal(peer, "roots", by) for by in (None, before.rehearsal)
            ]
            number, words = refusals[0]
            is_of_another = number in FOUND_HERE or (number in NO_CHAIN and self._is_foreign)
            if self._has_roots and not is_of_another and all(one.words for one in refusals):
                required, given = ACCEPTED[peer]
                problems.append(self._unfit("tls_cert", required, f"one {given}: {words}"))
        return problems

    def _spoilt(self, before: TlsFaults) -> list[Problem]:
        """The problems of certificates with the signature of one in other files.

        They are damaged, if it has that of its authority.
        """
        known = {*filter(before._is_signed, before._issuers)}
        signatures = {certificate.signature for certificate in known}
        return [
            self._unfit(key, SIGNED, f"one of {_name(one.subject)} {SPOILT}")
            for key, certificates in (("tls_cert", self.certificates), ("tls_ca", self.authorities))
            for one in certificates
            if one.signature in signatures and one not in known and not self._is_signed(one)
        ]

    def _is_signed(self, certificate: Certificate) -> bool:
        """Whether a certificate has the signature of one of ours, or its own."""
        own = _named(certificate, [certificate])
        return bool(self._issuers[certificate]) or any(_has_issued(one, certificate) for one in own)

    def covered(self, now: float) -> set[str]:
        """The authorities with a list that is valid."""
        return {
            name
            for name, spans in self._lists_of.items()
            if any(not span.fault(now) for span in spans)
        }

    def has_list(self, name: str, now: float) -> bool:
        """Whether there is a list in the name of this authority that is valid."""
        return any(not span.fault(now) for span in self._listed.get(name, ()))

    def _uncovered(self, authorities: Sequence[str], now: float) -> Problem:
        """The problem of authorities without a list that is valid."""
        lists = self._listed | self._lists_of
        old = [fault for name in authorities for fault in _faults(lists.get(name, ()), now)]
        issuers = sorted(self._listed.keys() - {*authorities})
        others = f"lists of {first_names(issuers, MOST_NAMED)}" if issuers else "other signatures"
        names_of = first_names(authorities, MOST_NAMED)
        return Problem(
            file=str(self.tls.revoked),
            key="tls_crl",
            required=f"a valid list of {names_of}, which signs for switches",
            given=f"one that {old[-1]}" if old else others,
        )


def _faults(spans: Iterable[Span], now: float) -> list[str]:
    """Why some of these are not valid now."""
    return [*filter(None, (span.fault(now) for span in spans))]


def _date(moment: float) -> str:
    """A time in messages."""
    return strftime("%Y-%m-%d %H:%M:%S UTC", gmtime(moment))


def _name(name: Name) -> str:
    """The name of an authority in messages; its types do not count, as in `issuer_words`."""
    return printable_name(str(part.value) for part in name)


def printable_name(parts: Iterable[str]) -> str:
    """The name of an authority in messages, of its parts."""
    text = ", ".join(parts)
    return text if text.isprintable() else repr(text)


def _key_ids(certificate: Certificate) -> tuple[bytes | None, bytes | None]:
    """The number of the key that has signed a certificate, and that of its own; None if unknown."""
    from cryptography.x509 import (
        AuthorityKeyIdentifier,
        DuplicateExtension,
        ExtensionNotFound,
        SubjectKeyIdentifier,
    )

    signer = own_key = None
    # Extensions that cannot be read are ValueErrors.
    with suppress(DuplicateExtension, ExtensionNotFound, ValueError):
        extension = certificate.extensions.get_extension_for_class(AuthorityKeyIdentifier)
        signer = extension.value.key_identifier
    with suppress(DuplicateExtension, ExtensionNotFound, ValueError):
        own_key = certificate.extensions.get_extension_for_class(SubjectKeyIdentifier).value.digest
    return signer, own_key


def _signature_fault(
    certificate: Certificate, candidates: Sequence[Certificate], chain: Collection[Certificate]
) -> str:
    """How a certificate lacks its authority's signature; "" if no candidate is that authority.

    Args:
        certificate: the certificate.
        candidates: certificates of authorities.
        chain: those of them that came with it for its sake.
    """
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    fault, signer = "", _key_ids(certificate)[0]
    # Itself first: a file may have many roots of one name.
    for authority in (*_named(certificate, [certificate]), *candidates):
        is_own = certificate == authority
        has_name = authority.subject == certificate.issuer
        key = _key_ids(authority)[1] if has_name or signer else None
        has_key = signer is not None and signer == key
        # Without the number of a key it may be another authority of this name.
        is_certain = has_key or (authority in chain and not _is_root(authority))
        if not has_key and not (has_name and (is_certain or None in (signer, key))):
            continue
        try:
            _verify(certificate, authority)
        except InvalidSignature:
            if is_certain or is_own:
                fault = "with another signature"
        except UnsupportedAlgorithm:  # only OpenSSL may know it
            return ""
        except (TypeError, ValueError):  # its key is damaged
            if not is_own:
                return ""
            fault = "with a signature of its own that cannot be checked"
        else:
            return ""
    return fault


def _named(certificate: Certificate, candidates: Iterable[Certificate]) -> Iterator[Certificate]:
    """The authorities that a certificate names, by name and, if there is one, number of the key."""
    signer = _key_ids(certificate)[0]
    for authority in candidates:
        if authority.subject == certificate.issuer:
            key = _key_ids(authority)[1]
            if None in (signer, key) or signer == key:
                yield authority


def _is_root(certificate: Certificate) -> bool:
    """Whether an authority says that it has signed itself."""
    return any(_named(certificate, [certificate]))


def _issuers(certificate: Certificate, candidates: Iterable[Certificate]) -> list[Certificate]:
    """The candidates that have signed a certificate, as `TlsFaults` keeps them."""
    if any(_has_issued(one, certificate) for one in _named(certificate, [certificate])):
        return []
    return [one for one in _named(certificate, candidates) if _has_issued(one, certificate)]


def _der(certificate: Certificate) -> bytes:
    """A certificate in DER."""
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)


def _has_issued(authority: Certificate, certificate: Certificate) -> bool:
    """Whether a certificate has the signature of an authority, as far as we can check it."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    try:
        _verify(certificate, authority)
    except (InvalidSignature, TypeError, ValueError, UnsupportedAlgorithm):
        return False
    return True


def _verify(certificate: Certificate, authority: Certificate) -> None:
    """Raise an error unless the key of an authority has signed a certificate.

    The library's own check does not know SHA-1 and MD5, with which old authorities signed.
    """
    from cryptography.hazmat.primitives.asymmetric.dsa import DSAPublicKey
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.padding import PSS, PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

    key, algorithm = authority.public_key(), certificate.signature_hash_algorithm
    how = certificate.signature_algorithm_parameters  # None for some, such as those with MD5
    signature, signed = certificate.signature, certificate.tbs_certificate_bytes
    match key, algorithm:
        case RSAPublicKey(), HashAlgorithm():
            key.verify(signature, signed, how if isinstance(how, PSS) else PKCS1v15(), algorithm)
        case EllipticCurvePublicKey(), HashAlgorithm():
            key.verify(signature, signed, ECDSA(algorithm))
        case DSAPublicKey(), HashAlgorithm():
            key.verify(signature, signed, algorithm)
        case Ed25519PublicKey() | Ed448PublicKey(), None:
            key.verify(signature, signed)
        case _:
            raise TypeError(key)


def _has_signed(authority: Certificate, crl: CertificateRevocationList) -> bool:
    """Whether an authority has signed a list; of keys that only OpenSSL knows, the name counts."""
    from cryptography.exceptions import UnsupportedAlgorithm

    if _name(authority.subject) != _name(crl.issuer):
        return False
    try:
        return crl.is_signature_valid(authority.public_key())  # type: ignore[arg-type]
    except (TypeError, ValueError, UnsupportedAlgorithm):
        return True
