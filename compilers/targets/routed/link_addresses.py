"""The addresses of links between routers: one plan for both ends, whatever systems these run.

Every link has a /31 (RFC 3021) and, where the fabric has IPv6, a /127 (RFC 6164): a *pair* of
addresses in each family. The link with number n (`compilers.wiring.link_numbers`) has pair n of a
pool. So addresses stay when links and nodes come and go, and when a node becomes one of another
type. If the balance marks packets, a link has a second pair, for the subinterfaces of marked
packets. Targets of routers ask the `LinkPlan` of a build for the addresses at each router.
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
"""The options with the pools of the addresses of links, of IPv4 and of IPv6."""
UNNUMBERED = "unnumbered"
"""The option by which links have no addresses."""


def _is_network(network_class: type[IPv4Network] | type[IPv6Network], text: str) -> bool:
    """Whether a text is a network of an IP version, in its canonical form."""
    try:
        return str(network_class(text)) == text
    except ValueError:
        return False


LINK_AGREEMENTS: Options = MappingProxyType(
    {
        LINKS: Option(
            "The pool of IPv4 addresses of links.",
            "100.64.0.0/10",
            "an IPv4 network such as 100.64.0.0/10",
            lambda text: _is_network(IPv4Network, text),
        ),
        LINKS6: Option(
            "The pool of IPv6 addresses of links.",
            "fd64::/64",
            "an IPv6 network such as fd64::/64",
            lambda text: _is_network(IPv6Network, text),
        ),
    }
)
"""The options on which both ends of a link agree, of systems whose links always have addresses."""
NUMBERED_AGREEMENTS: Options = MappingProxyType(
    {
        UNNUMBERED: Option.choice("Whether links have no addresses of their own.", "on", "off"),
        **LINK_AGREEMENTS,
    }
)
"""The options on which both ends of a link agree, of systems whose links have addresses only beside
other systems."""


@dataclass(frozen=True, slots=True)
class LinkAddresses:
    """The addresses at both ends of a link; all "" where links need none."""

    ipv4: str = ""
    """The router's own IPv4 address, with its length."""
    gateway4: str = ""
    """The IPv4 address at the other end."""
    ipv6: str = ""
    """The router's own IPv6 address, with its length; "" where the fabric has no IPv6."""
    gateway6: str = ""
    """The IPv6 address at the other end."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkPlan:
    """The addresses of all links of a build, of S switches with at most K links each."""

    build: Build
    """The build."""
    pool4: IPv4Network
    """The pool of IPv4 addresses."""
    pool6: IPv6Network
    """The pool of IPv6 addresses."""
    pair: NDArray[np.int64]
    """int64[S, K]: the number of each link's first pair of addresses, the same at both ends; -1: no
    link."""
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
    def address_count(self) -> int:
        """How many addresses a pool has to have for the links."""
        return addresses_a_link(self.build) * (int(self.pair.max()) + 1)

    def at(self, vertex: int, marked: bool = False) -> Iterator[LinkAddresses]:
        """The addresses of a router's links, in the order of its neighbours.

        Args:
            vertex: the vertex of the router.
            marked: whether to give the addresses of subinterfaces for marked packets instead.
        """
        neighbours = self.build.wiring.far[vertex]
        is_cabled = neighbours >= 0
        pairs = self.pair[vertex][is_cabled].tolist()
        for pair, neighbour in zip(pairs, neighbours[is_cabled].tolist(), strict=True):
            if not self.numbered:
                yield LinkAddresses()
                continue
            # A link's second pair, for marked packets, follows the two addresses of its first.
            first = pair * addresses_a_link(self.build) + (2 if marked else 0)
            # The router with the smaller vertex has the first address of the pair.
            if vertex < neighbour:
                yield self._ends(own_offset=first, far_offset=first + 1)
            else:
                yield self._ends(own_offset=first + 1, far_offset=first)

    def _ends(self, own_offset: int, far_offset: int) -> LinkAddresses:
        """The addresses of a link.

        Args:
            own_offset: the offset of the router's own address in each pool.
            far_offset: the offset of the address at the other end.
        """
        has_ipv6 = self.build.addressing.ipv6 is not None
        return LinkAddresses(
            ipv4=f"{self._ipv4(own_offset)}/31",
            gateway4=self._ipv4(far_offset),
            ipv6=f"{self._ipv6(own_offset)}/127" if has_ipv6 else "",
            gateway6=self._ipv6(far_offset) if has_ipv6 else "",
        )

    def _ipv4(self, offset: int) -> str:
        """The IPv4 address at an offset in the pool."""
        return str(IPv4Address(int(self.pool4.network_address) + offset))

    def _ipv6(self, offset: int) -> str:
        """The IPv6 address at an offset in the pool."""
        return str(IPv6Address(int(self.pool6.network_address) + offset))


def addresses_a_link(build: Build) -> int:
    """How many addresses a link has in each family: two, and two more for marked packets."""
    return 4 if build.forwarding.marks else 2


def link_pairs(build: Build) -> NDArray[np.int64]:
    """int64[S, K]: the number of each link's first pair of addresses (`LinkPlan.pair`)."""
    return link_numbers(build.wiring, build.allocations.of(LINK).used)
