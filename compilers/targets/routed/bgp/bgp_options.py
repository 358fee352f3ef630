"""The options of targets about eBGP, on which both ends of a link have to agree (*agreements*).

They say whether routes come from eBGP, and whether sessions have BFD, TTL security, weighted ECMP
and addresses. Their values come from `control_plane` of fabric.yaml. `Target.agreements` of a
target lists the options that its system supports.
"""

from __future__ import annotations

from functools import partial
from ipaddress import ip_network
from types import MappingProxyType

from compilers.targets.options import OFF, Chosen, Option, Options
from compilers.targets.routed.link_addresses import UNNUMBERED

ROUTING, BFD, GTSM, WCMP = "routing", "bfd", "gtsm", "wcmp"
"""The names of the options for the origin of routes, BFD, TTL security and weighted ECMP."""
NEXT_HOPS, NEXT_HOPS6 = "nexthops", "nexthops6"
"""The options with the pools of announced next hops, of IPv4 and of IPv6."""
NEXT_HOP_POOLS = (NEXT_HOPS, NEXT_HOPS6)
"""Both options, by address family."""
INTERFACE_SESSIONS = "sessions by interface"
"""How FRR speaks over links without addresses: neighbours find each other by the port. It is a
value of `Target.unnumbered`."""


def _is_network(text: str, version: int) -> bool:
    """Whether a text is a network of an IP version, in its canonical form."""
    try:
        network = ip_network(text)
    except ValueError:
        return False
    return str(network) == text and network.version == version


def _pool_option(version: int, default: str) -> Option:
    """The option with the pool of announced next hops of an IP version."""
    return Option(
        f"With alternates and eBGP: the pool of next hops, IPv{version}.",
        default,
        f"an IPv{version} network such as {default}",
        partial(_is_network, version=version),
    )


WCMP_AGREEMENT: Options = MappingProxyType(
    {
        WCMP: Option.choice(
            "With eBGP and transit: ecmp: weighted ECMP.",
            "off",
            "on",
        )
    }
)
"""The further option of systems whose BGP can weigh next hops by the number of paths behind
them."""
SHARING_AGREEMENTS: Options = MappingProxyType(
    {
        NEXT_HOPS: _pool_option(4, "100.127.0.0/16"),
        NEXT_HOPS6: _pool_option(6, "fd64:0:0:1::/64"),
    }
)
"""The further options of systems whose static routes, beside BGP, share packets from hosts over
next hops that BGP resolves."""
FRR_AGREEMENTS: Options = MappingProxyType(
    {
        UNNUMBERED: Option.choice(
            "With eBGP: sessions over links without addresses (RFC 8950).", "off", "on"
        ),
        **WCMP_AGREEMENT,
    }
)
"""The further options of systems with FRR's BGP whose links have addresses, unless the option
`unnumbered` is on."""


def bgp_agreements(*bfd_values: str) -> Options:
    """The options of every system that can have eBGP.

    Args:
        bfd_values: the values of the option `bfd`, the default first.
    """
    return MappingProxyType(
        {
            ROUTING: Option.choice(
                "Whether routes are static, or come from eBGP.", "static", "bgp"
            ),
            BFD: Option.choice(
                "Whether BFD watches every link. With eBGP: on. "
                "With static routes only BIRD and FRR can do this.",
                *bfd_values,
            ),
            GTSM: Option.choice(
                "With eBGP: TTL security (RFC 5082).",
                "on",
                "off",
            ),
        }
    )


def has_gtsm(chosen: Chosen) -> bool:
    """Whether sessions have TTL security: they take packets from the neighbour itself only."""
    return chosen.get(GTSM, OFF) != OFF


def has_wcmp(chosen: Chosen) -> bool:
    """Whether BGP weighs next hops by the number of paths behind them."""
    return chosen.get(WCMP, OFF) != OFF
