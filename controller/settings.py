"""Settings of a controller: addresses, TLS, foreign rows, repair, load, other controllers.

The verb `controller` makes them from its options, and `controller.app.serve` runs a controller with
them. A setting that cannot be used raises an InputError that names the option.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from inventory.problems import InputError, Problem

if TYPE_CHECKING:
    import ssl

ForeignRows = Literal["keep", "remove"]
"""The treatment of foreign rows and groups."""
FRAME_RATE = 1000.0
"""Most LLDP frames a second that the controller sends out of ports to other switches."""
PATIENCE = 5.0
"""Seconds that a switch may be disconnected before traffic is routed around it."""
ARRIVAL = 30.0
"""Seconds after the start in which a switch has to connect before it counts as gone."""
AUDIT_PERIOD = 300.0
"""Seconds in which the audit reads every switch once."""
PENALTY_STEP = 1000.0
"""The penalty of one flap; the thresholds are in the same unit (RFC 2439, §4.2)."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on."""

    host: str
    """The host name or IP address."""
    port: int
    """The TCP port."""
    option: str
    """The option that set it, for error messages."""

    @classmethod
    def parse(cls, text: str, option: str) -> Address:
        """The address that HOST:PORT or [HOST]:PORT means."""
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if host and port.isascii() and port.isdigit() and 0 < int(port) < 65536:
            return cls(host, int(port), option)
        raise InputError.of(
            key=option,
            required="HOST:PORT, a port from 1 to 65535",
            given=repr(text),
            todo="for example 127.0.0.1:6653",
        )

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Tls:
    """The PEM files of TLS."""

    key: Path
    """Our private key."""
    certificate: Path
    """Our certificate."""
    authority: Path
    """The authority that signs switches' certificates."""
    revoked: Path | None = None
    """Revocation lists of the authority."""
    names: str = "{node}"
    """The name in the certificate of a switch, with {node} in place of its node."""

    @classmethod
    def of(
        cls,
        key: Path | None,
        certificate: Path | None,
        authority: Path | None,
        revoked: Path | None = None,
        names: str = "{node}",
    ) -> Tls | None:
        """The files; None if none is set.

        Raises:
            InputError: some of the first three are missing, or `names` does not have {node} once.
        """
        if names.count("{node}") != 1:
            raise InputError.of(
                key="tls_names",
                required="a name with {node} in it once",
                given=repr(names),
                todo="for example '{node}.fabric.example'",
            )
        files = {"tls_key": key, "tls_cert": certificate, "tls_ca": authority}
        if not any((*files.values(), revoked)):
            return None
        if key and certificate and authority:
            return cls(key, certificate, authority, revoked, names)
        raise InputError(
            [
                Problem(key=option, required="all three of a TLS server's files", given="nothing")
                for option, file in files.items()
                if not file
            ]
        )

    def context(self, *, clients: bool = True) -> ssl.SSLContext:
        """A server's context, for TLS 1.2 or later.

        Args:
            clients: whether clients need a certificate of the authority.
        """
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED if clients else ssl.CERT_NONE
        # A resumed session would not have its client's certificate checked again. One of TLS 1.2
        # still may be (`TlsFiles.fault`).
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        self._load_into(context)
        if clients and self.revoked:
            try:
                context.load_verify_locations(self.revoked)
            except (OSError, ssl.SSLError) as error:
                raise InputError([_unusable("tls_crl", str(self.revoked), error)]) from error
            context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
        return context

    def client_context(self) -> ssl.SSLContext:
        """A client's context: the authority must have signed the server's certificate."""
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._load_into(context)
        return context

    def _load_into(self, context: ssl.SSLContext) -> None:
        """Load key, certificate and authority into a context."""
        import ssl

        context.minimum_version = ssl.TLSVersion.TLSv1_2
        problems = []
        try:
            # Without a password callback OpenSSL would ask for a password on the terminal.
            context.load_cert_chain(self.certificate, self.key, password=lambda: b"")
        except (OSError, ssl.SSLError) as error:
            problems.append(
                _unusable("tls_cert, tls_key", f"{self.certificate}, {self.key}", error)
            )
        try:
            context.load_verify_locations(self.authority)
            if not context.cert_store_stats()["x509"]:  # OpenSSL takes a revocation list, too
                raise OSError("no certificate of an authority")
        except (OSError, ssl.SSLError) as error:
            problems.append(_unusable("tls_ca", str(self.authority), error))
        if problems:
            raise InputError(problems)


@dataclass(frozen=True, slots=True)
class StoreGroup:
    """The store that several controllers share."""

    urls: tuple[str, ...]
    """The URLs of the store's members."""
    prefix: str
    """The prefix of our fabric's keys."""
    name: str
    """The name of this controller in the store."""

    @property
    def is_encrypted(self) -> bool:
        """Whether a member of the store is reached by TLS."""
        return any(url.startswith("https:") for url in self.urls)

    @classmethod
    def parse(cls, text: str, name: str) -> StoreGroup:
        """The store at URL,URL,…; fabrics that share it have different paths in their URLs."""
        try:
            parts = [urlsplit(url) for url in text.split(",")]
            are_urls = all(part.scheme in ("http", "https") and part.hostname for part in parts)
            share_path = len({part.path.strip("/") for part in parts}) == 1
        except ValueError:
            are_urls = share_path = False
        if not (are_urls and share_path):
            raise InputError.of(
                key="store",
                required="URLs of etcd, with commas between them, all with the same path",
                given=repr(text),
                todo="for example http://127.0.0.1:2379 or https://etcd1:2379/lab",
            )
        prefix = "/".join(filter(None, ("polarfab", parts[0].path.strip("/"))))
        return cls(tuple(f"{part.scheme}://{part.netloc}" for part in parts), prefix, name)


@dataclass(frozen=True, slots=True)
class Damping:
    """The damping of flapping links (RFC 2439).

    With the defaults, a link is suppressed at its third failure within 15 seconds and used again
    after 15 to 60 seconds without another.
    """

    half_life: float = 15.0
    """Seconds in which a penalty halves."""
    suppress: float = 2200.0
    """The penalty above which a link is not used."""
    reuse: float = 1000.0
    """The penalty below which a link is used again."""
    longest: float = 60.0
    """The most seconds that a link is suppressed."""

    @classmethod
    def parse(cls, text: str, option: str) -> Damping:
        """The damping of half-life, suppress, reuse and longest, separated by commas."""
        try:
            half_life, suppress, reuse, longest = map(float, text.split(","))
        except ValueError:
            half_life = suppress = reuse = longest = 0.0
        if half_life > 0 and longest > 0 and isfinite(longest) and 0 < reuse < suppress < inf:
            return cls(half_life, suppress, reuse, longest)
        raise InputError.of(
            key=option,
            required="half-life, suppress, reuse, longest: four numbers above 0, reuse below "
            "suppress",
            given=repr(text),
            todo="for example 15,2200,1000,60",
        )

    @property
    def ceiling(self) -> float:
        """The penalty that takes `longest` to fall to `reuse` (RFC 2439, §4.8.4)."""
        return float(self.reuse * 2 ** (self.longest / self.half_life))


@dataclass(frozen=True, slots=True)
class Duties:
    """The tasks of the keeper (`controller.upkeep.repair_keeper`)."""

    repair: bool = True
    """Whether tables follow failures."""
    discover: bool = False
    """Whether LLDP frames are sent."""
    rate: float = FRAME_RATE
    """The most LLDP frames a second out of ports to other switches. Those of free ports come on
    top."""
    patience: float = PATIENCE
    """Seconds that a switch may be disconnected before traffic is routed around it."""
    arrival: float = ARRIVAL
    """Seconds after the start in which a switch has to connect before it counts as gone."""
    damping: Damping = field(default_factory=Damping)
    """The damping of flapping links."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a controller."""

    listen: Address
    """The address that switches connect to."""
    tls: Tls | None = None
    """The files of TLS; None for plain text."""
    insecure: bool = False
    """Whether plain text beyond loopback is allowed."""
    http: Address | None = None
    """The address of the management API; None without one."""
    http_needed: bool = True
    """Whether the controller refuses to start without the management API."""
    hosts: tuple[str, ...] = ()
    """Names that the management API goes by, besides addresses, localhost and that of `http`."""
    tokens: Path | None = None
    """The file of the tokens that allow changes."""
    token_to_read: bool = False
    """Whether reading needs a token, too."""
    foreign: ForeignRows = "keep"
    """The treatment of foreign rows."""
    status_file: Path | None = None
    """The file that the state is written to; None for none."""
    as_json: bool = False
    """Whether events are printed as JSON."""
    duties: Duties = field(default_factory=Duties)
    """The tasks of upkeep."""
    audit: float = AUDIT_PERIOD
    """Seconds in which every switch is read once; 0 to read only those that were changed."""
    group: StoreGroup | None = None
    """The store that is shared with the fabric's other controllers; None for one controller."""
    unverified: bool = False
    """Whether builds in which verification finds faults are taken from a store, too."""
    apps: tuple[str, ...] = ()
    """Other applications in the same process: a module and its options."""

    def check(self) -> None:
        """Refuse settings that would let strangers in by oversight."""
        if self.token_to_read and not self.tokens:
            raise InputError.of(
                key="token_to_read", required="tokens, by `token_file`", given="none"
            )
        if self.insecure:
            return
        problems = [
            Problem(
                key="store",
                required="https, or a store on loopback",
                given=f"{url} in plain text, where anyone can lead the fabric",
                todo="give https URLs with `tls_ca`, or `insecure` to allow it",
            )
            for url in (self.group.urls if self.group else ())
            if url.startswith("http:") and not _is_loopback(urlsplit(url).hostname or "")
        ]
        problems += [
            Problem(
                key=address.option,
                required="an address of loopback, or TLS",
                given=f"{address} in plain text, where anyone can {risk}",
                todo="give `tls_key`, `tls_cert` and `tls_ca`, or `insecure` to allow it",
            )
            for address, risk in (
                (self.listen, "impersonate a switch"),
                (self.http, "read everything, including tokens"),
            )
            if address and not _is_loopback(address.host) and not self.tls
        ]
        if problems:
            raise InputError(problems)


def _unusable(key: str, file: str, error: Exception) -> Problem:
    """The problem of TLS files that cannot be used."""
    return Problem(
        file=file,
        key=key,
        required="PEM files that can be read and fit each other, the key without a password",
        given=str(getattr(error, "strerror", None) or error),
    )


def _is_loopback(host: str) -> bool:
    """Whether a host can be reached from this machine only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
