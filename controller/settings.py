"""What a controller is asked to do beyond its build: where to listen, with which precautions."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address
from math import inf, isfinite
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from inventory.problems import InputError, Problem

ForeignRows = Literal["keep", "remove"]
"""What becomes of rows and groups of others."""
LINK_RATE = 1000.0
"""LLDP frames a second that the controller sends at most."""
DISCOVERY_PATIENCE = 5.0
"""Seconds that a switch may be gone before traffic goes around it."""
PENALTY_STEP = 1000.0
"""The penalty of one flap; the thresholds are in the same unit (RFC 2439, §4.2)."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. key: the option that said so."""

    host: str
    port: int
    key: str

    @classmethod
    def parse(cls, text: str, key: str) -> Address:
        """HOST:PORT or [HOST]:PORT.

        Raises:
            InputError: it is neither.
        """
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if host and port.isascii() and port.isdigit() and 0 < int(port) < 65536:
            return cls(host, int(port), key)
        raise InputError(
            Problem(
                key=key,
                required="HOST:PORT, a port from 1 to 65535",
                given=repr(text),
                todo="for example 127.0.0.1:6653",
            )
        )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files: our key and certificate, and the authority that switches' certificates are of."""

    key: Path
    certificate: Path
    authority: Path

    @classmethod
    def of(cls, key: Path | None, certificate: Path | None, authority: Path | None) -> Tls | None:
        """None where none of them is given.

        Raises:
            InputError: some are given and some are not.
        """
        files = {"--tls-key": key, "--tls-cert": certificate, "--tls-ca": authority}
        if not any(files.values()):
            return None
        if key and certificate and authority:
            return cls(key, certificate, authority)
        raise InputError(
            [
                Problem(key=option, required="all three of a TLS server's files", given="nothing")
                for option, file in files.items()
                if not file
            ]
        )

    def context(self, *, clients: bool = True) -> ssl.SSLContext:
        """For a server, TLS 1.2 on; with `clients` they need a certificate of the authority.

        Raises:
            InputError: a file cannot be read or is not what it should be.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED if clients else ssl.CERT_NONE
        return self._filled(context)

    def asking(self) -> ssl.SSLContext:
        """The same files for a client: the server's certificate must be of the authority.

        Raises:
            InputError: a file cannot be read or is not what it should be.
        """
        return self._filled(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def _filled(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        problems = []
        try:
            # Without a password callback OpenSSL would ask for one on the terminal.
            context.load_cert_chain(self.certificate, self.key, password=lambda: b"")
        except (OSError, ssl.SSLError) as error:
            problems.append(
                _unusable("--tls-cert, --tls-key", f"{self.certificate}, {self.key}", error)
            )
        try:
            context.load_verify_locations(self.authority)
        except (OSError, ssl.SSLError) as error:
            problems.append(_unusable("--tls-ca", str(self.authority), error))
        if problems:
            raise InputError(problems)
        return context


@dataclass(frozen=True, slots=True)
class StoreGroup:
    """A store and who we are in it. urls: of its members; prefix: of the keys of our fabric."""

    urls: tuple[str, ...]
    prefix: str
    name: str

    @classmethod
    def parse(cls, text: str, name: str) -> StoreGroup:
        """URL,URL,…; a path in them sets fabrics apart that share a store.

        Raises:
            InputError: it is not.
        """
        try:
            parts = [urlsplit(url) for url in text.split(",")]
            good = all(part.scheme in ("http", "https") and part.hostname for part in parts)
            good = good and len({part.path.strip("/") for part in parts}) == 1
        except ValueError:
            good = False
        if not good:
            raise InputError(
                Problem(
                    key="--store",
                    required="URLs of etcd, with commas between them, all with the same path",
                    given=repr(text),
                    todo="for example http://127.0.0.1:2379 or https://etcd1:2379/lab",
                )
            )
        prefix = "/".join(filter(None, ("polarfab", parts[0].path.strip("/"))))
        return cls(tuple(f"{part.scheme}://{part.netloc}" for part in parts), prefix, name)


@dataclass(frozen=True, slots=True)
class Damping:
    """What is a flapping link, and for how long. Times in seconds.

    With the defaults the third time within half a minute suppresses a link; it is used again after
    15 to 60 seconds without another.
    """

    half_life: float = 15.0
    suppress: float = 2200.0
    reuse: float = 1000.0
    longest: float = 60.0

    @classmethod
    def parse(cls, text: str, key: str) -> Damping:
        """Half-life, suppress, reuse and longest, with commas between them.

        Raises:
            InputError: they are not four numbers that fit together.
        """
        try:
            half_life, suppress, reuse, longest = map(float, text.split(","))
        except ValueError:
            half_life = suppress = reuse = longest = 0.0
        if half_life > 0 and longest > 0 and isfinite(longest) and 0 < reuse < suppress < inf:
            return cls(half_life, suppress, reuse, longest)
        raise InputError(
            Problem(
                key=key,
                required="half-life, suppress, reuse, longest: four numbers above 0, reuse below "
                "suppress",
                given=repr(text),
                todo="for example 15,2200,1000,60",
            )
        )

    @property
    def ceiling(self) -> float:
        """The penalty that takes `longest` to fall to `reuse` (RFC 2439, §4.8.4)."""
        return float(self.reuse * 2 ** (self.longest / self.half_life))


@dataclass(frozen=True, slots=True)
class Duties:
    """What the keeper (`controller.upkeep.keeper`) is to do.

    repair: tables follow failures. discover: send LLDP frames, so many a second at most (rate).
    adapt: weights follow loads; None: where the build asks for `ugal-pf`. link_rate: what a port
    carries in bit/s, where switches do not tell. patience: seconds that a switch may be gone.
    """

    repair: bool = True
    discover: bool = False
    rate: float = LINK_RATE
    adapt: bool | None = None
    link_rate: float | None = None
    patience: float = DISCOVERY_PATIENCE
    damping: Damping = field(default_factory=Damping)


@dataclass(frozen=True, slots=True)
class Settings:
    """All of it.

    insecure: plain text beyond loopback was asked for. foreign: rows of others. http: where the
    management API listens, tokens: the file of those who may change things. duties: what to do
    about failures and loads. group: the other controllers of the fabric, where there are any.
    """

    listen: Address
    tls: Tls | None = None
    insecure: bool = False
    http: Address | None = None
    tokens: Path | None = None
    foreign: ForeignRows = "keep"
    status_file: Path | None = None
    as_json: bool = False
    duties: Duties = field(default_factory=Duties)
    group: StoreGroup | None = None

    def check(self) -> None:
        """Refuse what would let strangers in by oversight.

        Raises:
            InputError: plain text beyond loopback that nobody asked for.
        """
        if self.tls or self.insecure:
            return
        problems = [
            Problem(
                key=address.key,
                required="an address of loopback, or TLS",
                given=f"{address} in plain text, where anyone can {risk}",
                todo="give --tls-key, --tls-cert and --tls-ca, or --insecure if it must be",
            )
            for address, risk in (
                (self.listen, "pose as a switch"),
                (self.http, "read along, tokens too"),
            )
            if address and not address.loopback
        ]
        if problems:
            raise InputError(problems)


def _unusable(key: str, file: str, error: Exception) -> Problem:
    return Problem(
        file=file,
        key=key,
        required="PEM files that can be read and fit each other, the key without a password",
        given=str(getattr(error, "strerror", None) or error),
    )
