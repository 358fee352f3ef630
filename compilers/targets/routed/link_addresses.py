"""The addresses of links, the same plan for both ends whatever systems these have.

Every link has two addresses of its own: a /31 (RFC 3021) and, where the fabric has IPv6, a /127
(RFC 6164). The link with number n (`compilers.wiring.link_numbers`) has pair n of a pool. So
addresses stay when links and nodes come and go, and when a node becomes one of another type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from compilers.spec.allocations import LINK
from compilers.tables.build import Build
from compilers.targets.options import OFF, Chosen, Option, Options
from compilers.wiring.link_numbers import link_numbers

LINKS, LINKS6 = "links", "links6"
UNNUMBERED = "unnumbered"


def _accepts(kind: type[IPv4Network] | type[IPv6Network], text: str) -> bool:
    """Whether a text is a network of this kind in its canonical form."""
    try:
        return str(kind(text)) == text
    except ValueError:
        return False


LINK_AGREEMENTS: Options = MappingProxyType(
    {
        LINKS: Option(
            "The pool of IPv4 addresses of links.",
            "100.64.0.0/10",
            "an IPv4 network such as 100.64.0.0/10",
            lambda text: _accepts(IPv4Network, text),
        ),
        LINKS6: Option(
            "The pool of IPv6 addresses of links.",
            "fd64::/64",
            "an IPv6 network such as fd64::/64",
            lambda text: _accepts(IPv6Network, text),
        ),
    }
)
"""What neighbours of every system with addresses on links agree on."""
NUMBERED_AGREEMENTS: Options = MappingProxyType(
    {
        UNNUMBERED: Option.choice("Whether links have no addresses of their own.", "on", "off"),
        **LINK_AGREEMENTS,
    }
)
"""The same of a system whose links have addresses only beside other systems."""


@dataclass(frozen=True, slots=True)
class LinkAddresses:
    """The addresses at both ends of a link; all "" where links need none."""

    ipv4: str = ""
    """The router's own, with its length."""
    gateway4: str = ""
    """The address at the other end."""
    ipv6: str = ""
    """The same of IPv6; "" where the fabric has none."""
    gateway6: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class LinkPlan:
    """The addresses of all links of a build. S is the number of switches, K that of their links."""

    build: Build
    pool4: IPv4Network
    """The pool of IPv4 addresses."""
    pool6: IPv6Network
    pair: NDArray[np.int64]
    """int64[S, K]: the number of each link's pair of addresses, -1 behind the last link."""
    numbered: bool
    """Whether links have addresses."""

    @classmethod
    def of(cls, build: Build, chosen: Chosen) -> LinkPlan:
        """The plan of a build, with options as in `LINK_AGREEMENTS`."""
        return cls(
            build=build,
            pool4=IPv4Network(chosen[LINKS]),
            pool6=IPv6Network(chosen[LINKS6]),
            pair=link_pairs(build),
            numbered=chosen.get(UNNUMBERED, OFF) == OFF,
        )

    @property
    def needed(self) -> int:
        """How many addresses the links have in each family."""
        return addresses_a_link(self.build) * (int(self.pair.max()) + 1)

    def at(self, vertex: int, marked: bool = False) -> Iterator[LinkAddresses]:
        """The addresses of a router's links, in the order of its neighbours.

        Args:
            vertex: of the router.
            marked: whether they are those of subinterfaces for marked packets.
        """
        far = self.build.wiring.far[vertex]
        cabled = far >= 0
        ends = zip(self.pair[vertex][cabled].tolist(), far[cabled].tolist(), strict=True)
        for pair, neighbour in ends:
            if not self.numbered:
                yield LinkAddresses()
                continue
            own = pair * addresses_a_link(self.build) + 2 * int(marked) + int(vertex > neighbour)
            yield self._ends(own)

    def _ends(self, own: int) -> LinkAddresses:
        """The addresses of a link, by the number of the router's own."""
        far = own ^ 1
        if not self.build.addressing.ipv6:
            return LinkAddresses(f"{self._ipv4(own)}/31", self._ipv4(far))
        return LinkAddresses(
            ipv4=f"{self._ipv4(own)}/31",
            gateway4=self._ipv4(far),
            ipv6=f"{self._ipv6(own)}/127",
            gateway6=self._ipv6(far),
        )

    def _ipv4(self, offset: int) -> str:
        return str(IPv4Address(int(self.pool4.network_address) + offset))

    def _ipv6(self, offset: int) -> str:
        return str(IPv6Address(int(self.pool6.network_address) + offset))


def addresses_a_link(build: Build) -> int:
    """The addresses of a link in each family: two, and two more for marked packets."""
    return 4 if build.forwarding.marks else 2


def link_pairs(build: Build) -> NDArray[np.int64]:
    """int64[S, K]: the number of each link's pair of addresses, the same at both ends; -1: none."""
    return link_numbers(build.wiring, build.allocations.of(LINK).used)
