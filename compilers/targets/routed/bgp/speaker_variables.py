"""The BGP of a switch as templates print it: the speaker, its address families, its neighbours.

`ControlPlane` computes these values from a build, and explains the preferred paths and the
announced next hops. The templates of all systems with eBGP print them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class BgpPeer:
    """A neighbour in an address family."""

    interface: str
    """The name of the switch's port to the neighbour."""
    number: int
    """The neighbour's AS number (ASN)."""
    address: str
    """The neighbour's address on the link; "" where links have no addresses."""
    description: str
    """The neighbour's name and the port at its end."""
    preferred: tuple[str, ...]
    """The prefixes to which several neighbours have paths of one length, and whose compiled path
    goes over this neighbour."""
    policy: str
    """The name of the import policy for this neighbour."""

    @property
    def name(self) -> str:
        """The name of the session: the address, or the port where there is none."""
        return self.address or self.interface


@dataclass(frozen=True, slots=True)
class BgpFamily:
    """The BGP of a switch in one address family."""

    name: str
    """ipv4 or ipv6."""
    word: str
    """The first word of commands about the family: ip or ipv6."""
    pool: str
    """The network that contains all prefixes of the fabric."""
    length: int
    """The length of the prefixes of switches."""
    own: str
    """The prefix of the switch's hosts; "" if no switch has a route to it."""
    peers: tuple[BgpPeer, ...]
    """The neighbours of the switch."""
    via: str = ""
    """The prefix of the address that the switch announces as a next hop, for static routes of its
    neighbours; "" if no switch announces such an address."""
    via_pool: str = ""
    """The pool of the announced next hops of all switches."""

    @property
    def full(self) -> int:
        """The bits of an address: the prefix length of a single address."""
        return 32 if self.name == "ipv4" else 128

    @property
    def announced(self) -> list[str]:
        """The prefixes that the switch announces as its own."""
        return [prefix for prefix in (self.own, self.via) if prefix]

    def policies(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The import policies, each with the prefixes that it prefers; the last prefers none."""
        for peer in self.peers:
            if peer.preferred:
                yield peer.policy, peer.preferred
        yield f"fabric-{self.name}", ()


@dataclass(frozen=True, slots=True)
class BgpSpeaker:
    """The BGP of a switch, as templates print it."""

    number: int
    """The AS number of the switch (ASN)."""
    router_id: str
    """Its router id, an IPv4 address."""
    longest: int
    """The most links that a path may have. Longer paths are not accepted."""
    bfd: bool
    """Whether BFD watches every session."""
    gtsm: bool
    """Whether sessions have TTL security (RFC 5082): they accept only packets with TTL 255, which
    no router has forwarded."""
    numbered: bool
    """Whether links have addresses. Then each address family has a session of its own. Otherwise
    one session is for both."""
    paths: int
    """How many paths to a prefix the switch uses at once (the maximum of multipath)."""
    wcmp: bool
    """Whether the switch announces with each route how many next hops it has for it, so that
    neighbours can weigh it."""
    families: tuple[BgpFamily, ...]
    """What the switch announces and accepts in each address family."""
    keepalive: ClassVar[int] = 3
    """Seconds between keepalives."""
    hold: ClassVar[int] = 9
    """Seconds without a keepalive after which a session ends."""
    connect: ClassVar[int] = 1
    """Seconds between attempts to open a session."""
    coalesce: ClassVar[int] = 50
    """Milliseconds for which FRR waits for more sessions before it announces. Its own value is a
    second, counted from the first session. Then a switch that starts again announces the next hop
    of its neighbours' static routes on all sessions before the later neighbours have sent it
    theirs, and drops packets."""
    interval: ClassVar[int] = 300
    """Milliseconds between packets of BFD (the interval of RFC 5880)."""
    multiplier: ClassVar[int] = 3
    """How many packets of BFD have to be missed in a row for a link to count as dead (the detection
    multiplier of RFC 5880)."""

    def groups(self) -> Iterator[tuple[str, tuple[BgpFamily, ...]]]:
        """The peer groups, each with the families of its sessions."""
        if self.numbered:
            for family in self.families:
                yield f"fabric-{family.name}", (family,)
        else:
            yield "fabric", self.families

    def announced(self, name: str) -> list[str]:
        """The prefixes that the switch announces as its own in the family of a name."""
        return next((family.announced for family in self.families if family.name == name), [])
