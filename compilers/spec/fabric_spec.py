"""fabric.yaml as a value: what to build, how to address it, how to route it.

`FabricSpec` is a pydantic model, which `fabric_file` fills from the file. Each type of a field has
a function that checks the value, and a schema for editors. Checks of several fields together are in
`cross_checks` and `value_checks`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network, ip_interface, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema

from compilers.spec.balances import balance_named, balance_names, own_balances
from compilers.spec.forwarding import Forwarding
from compilers.spec.policy import EQUAL_COST, EVERY_HOP
from compilers.spec.share_expression import LONGEST_EXPRESSION, share_value
from compilers.spec.target_names import SHIPPED_SYSTEMS, meant_target, system_names
from compilers.topology.families import family_of
from inventory.names import NAME
from inventory.problems import did_you_mean
from inventory.values import (
    AsNumber,
    Mac,
    Management,
    Model,
    Name,
    PortName,
    TypeName,
    Vars,
    Whole,
    refusal,
)

SHARE = re.compile(rf"{EQUAL_COST}|[0-9q.+*/() -]{{1,{LONGEST_EXPRESSION}}}")
"""The text of a share: `equal-cost`, a number, or an expression of q."""
NOT_FOR_HOSTS = (
    ip_network("0.0.0.0/8"),
    ip_network("127.0.0.0/8"),
    ip_network("169.254.0.0/16"),
    ip_network("224.0.0.0/3"),
    ip_network("::/127"),
    ip_network("fe80::/10"),
    ip_network("ff00::/8"),
)
"""Networks whose addresses hosts cannot have: local, link-local, multicast and reserved ones."""
WRITE_POOL = "write it like 10.0.0.0/8"
"""The remedy for a text that is no pool."""


def _system_name(value: Any) -> Any:
    """Pass the name of an installed target that forwards; refuse others."""
    if value in SHIPPED_SYSTEMS:  # installed packages are listed only for other names
        return value
    systems = system_names()
    if not isinstance(value, str) or value not in systems:
        meant = meant_target(str(value), systems)
        todo = f"did you mean {meant}?" if meant else ""
        raise refusal(f"one of {', '.join(systems)}", todo)
    return value


def _balance_name(value: Any) -> Any:
    """Pass the name of an installed balance; refuse others."""
    if value in own_balances():  # installed packages are listed only for other names
        return value
    names = balance_names()
    if not isinstance(value, str) or value not in names:
        raise refusal(f"one of {', '.join(names)}", did_you_mean(str(value), names))
    return value


BalanceName = Annotated[
    str,
    BeforeValidator(_balance_name),
    WithJsonSchema({"enum": own_balances(), "type": "string"}),
]
"""The name of a balance. The schema lists polarfab's own."""
SystemName = Annotated[
    str,
    BeforeValidator(_system_name),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(SHIPPED_SYSTEMS)},
                {"type": "string", "pattern": f"^({NAME.pattern})$"},
            ]
        }
    ),
]
"""The name of a system. The schema lists polarfab's own, and allows what a package may register."""


def _parameter(value: Any) -> Any:
    """Pass a whole number, a text, or None; refuse others."""
    if type(value) not in (int, str, type(None)) or value == "":
        raise refusal("a whole number or a text")
    return value


def _pool(value: Any) -> Any:
    """Return a pool of unicast addresses as a network; refuse others."""
    if isinstance(value, IPv4Network | IPv6Network):
        return value
    if not isinstance(value, str) or "/" not in value or "%" in value:
        raise refusal("a pool, an address with a prefix length", WRITE_POOL)
    try:
        pool = ip_network(value, strict=False)
    except ValueError:
        raise refusal("a pool, an address with a prefix length", WRITE_POOL) from None
    if ip_interface(value).ip != pool.network_address:
        raise refusal("a pool whose host bits are 0", f"did you mean {pool}?")
    for special in NOT_FOR_HOSTS:
        if special.version == pool.version and special.overlaps(pool):
            raise refusal(f"a pool of unicast addresses, outside {special}")
    return pool


def _ipv4_pool(value: Any) -> Any:
    """Return an IPv4 pool; refuse others."""
    if not isinstance(pool := _pool(value), IPv4Network):
        raise refusal("an IPv4 pool", "put this one under ipv6")
    return pool


def _ipv6_pool(value: Any) -> Any:
    """Return an IPv6 pool; refuse others."""
    if not isinstance(pool := _pool(value), IPv6Network):
        raise refusal("an IPv6 pool", "put this one under ipv4")
    return pool


def _share_text(value: Any) -> Any:
    """Return a share as text: a number or an expression of q; refuse others."""
    text = str(value) if type(value) in (int, float) else value
    if not isinstance(text, str) or not SHARE.fullmatch(text):
        raise refusal("a number from 0 to 1, or an expression of q such as 1/q")
    return text


_IPV4_SCHEMA = WithJsonSchema(
    {
        "type": "string",
        "pattern": r"^(?!127\.|169\.254\.|22[4-9]\.|2[3-9][0-9]\.)[0-9]+(\.[0-9]+){3}/[0-9]{1,2}$",
    }
)
_IPV6_SCHEMA = WithJsonSchema(
    {
        "type": "string",
        "pattern": r"^(?![fF][fF]|[fF][eE]80)[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*/[0-9]{1,3}$",
    }
)
Share = Annotated[
    str,
    BeforeValidator(_share_text),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "string", "pattern": f"^({SHARE.pattern})$"},
            ]
        }
    ),
]
"""A share of traffic as text, which has its value only when q is known."""
Parameter = Annotated[
    int | str | None,
    PlainValidator(_parameter),
    WithJsonSchema({"type": ["integer", "string", "null"], "minLength": 1}),
]
"""A parameter of a topology that only its family knows."""


class TopologySpec(Model):
    """A family and its parameters; the family checks them (`compilers.topology.family`).

    Some families have other parameters, such as `sides` and `clusters`. Their values are integers
    or texts (docs/reference/fabric-yaml.md).
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Parameter]

    family: TypeName
    """The family of graphs."""
    q: Whole | None = None
    """The order of the finite field, a prime power, of families that are built on one."""
    supernode: Literal["inductive-quad", "paley", "complete", "bdf", "cayley"] | None = None
    """The graph that PolarStar has in the place of a vertex."""
    degree: Annotated[Whole, Field(ge=0, le=1024)] | None = None
    """The links of a switch inside its supernode, or those of each switch of a random graph."""
    file: Annotated[str, Field(min_length=1)] | None = None
    """The file of a graph of the user's own, for family `graph`."""

    def parameters(self) -> dict[str, int | str]:
        """Return the family's parameters that the spec gives, by name."""
        return self.model_dump(exclude={"family"}, exclude_none=True)


class AddressingSpec(Model):
    """Pools that hosts are numbered from, and the MAC address of every OpenFlow switch."""

    ipv4: Annotated[IPv4Network, BeforeValidator(_ipv4_pool), _IPV4_SCHEMA] = IPv4Network(
        "10.0.0.0/8"
    )
    """The pool of IPv4 addresses."""
    ipv6: Annotated[IPv6Network, BeforeValidator(_ipv6_pool), _IPV6_SCHEMA] | None = None
    """The pool of IPv6 addresses; without it, hosts have none."""
    links: Annotated[IPv4Network, BeforeValidator(_ipv4_pool), _IPV4_SCHEMA] | None = None
    """The pool of IPv4 addresses of links, where these have addresses. Default: 100.64.0.0/10."""
    links6: Annotated[IPv6Network, BeforeValidator(_ipv6_pool), _IPV6_SCHEMA] | None = None
    """The pool of IPv6 addresses of links, where these have addresses. Default: fd64::/64."""
    next_hops: Annotated[IPv4Network, BeforeValidator(_ipv4_pool), _IPV4_SCHEMA] | None = None
    """The pool of next hops that BGP announces, IPv4: for alternates with eBGP, and for the static
    routes of FRR 8.4 with BFD. Default: 100.127.0.0/16.
    """
    next_hops6: Annotated[IPv6Network, BeforeValidator(_ipv6_pool), _IPV6_SCHEMA] | None = None
    """The pool of next hops that BGP announces, IPv6: for alternates with eBGP, and for the static
    routes of FRR 8.4 with BFD. Default: fd64:0:0:1::/64.
    """
    gateway_mac: Mac = "02:50:46:00:00:01"
    """The MAC address that every OpenFlow switch answers to."""
    source_checks: bool = True
    """Whether OpenFlow switches drop a host's packets with another source address than its own."""


class ControlPlaneSpec(Model):
    """Settings of routers that have to be the same at both ends of a link."""

    routes: Literal["static", "ebgp"] | None = None
    """Whether routes are static, or come from eBGP. Default: static."""
    bfd: bool | None = None
    """Whether BFD watches every link. Default: true with eBGP; with static routes, what is usual
    for the system."""
    gtsm: bool | None = None
    """Whether BGP sessions have TTL security (RFC 5082). Default: true with eBGP, unless a system
    of the fabric cannot have it, or the fabric has BFD and combines FRR with another BGP
    implementation (SONiC and Cumulus Linux have FRR's)."""
    unnumbered: bool | None = None
    """Whether links have no addresses: with eBGP (RFC 8950), and on FRR with static routes, too.
    Default: true with FRR or BIRD alone; false with SONiC or Cumulus Linux, and with eBGP in a
    fabric of several systems."""
    wcmp: bool | None = None
    """Whether next hops get weights by the number of paths behind them (weighted ECMP). Only with
    eBGP and `transit: ecmp`. Default: false."""


class RoutingSpec(Model):
    """Routing policy."""

    balance: BalanceName = "minimal"
    """How packets of hosts are spread over paths."""
    protect: Literal["none", "link", "node", "module"] = "none"
    """What may fail without a pair losing its path: the switches repair it by themselves."""
    minimal_share: Share = EQUAL_COST
    """The minimal path's part of the traffic: a number, an expression of q, or `equal-cost`."""
    disjoint: Literal["auto", "none", "edge"] = "auto"
    """Whether alternates may share a link with the minimal path (`none`) or not (`edge`); `auto`
    takes what carries more.
    """
    adjacent: Literal["minimal", "bounce"] = "minimal"
    """Whether packets to a neighbour go there only (`minimal`), or also over alternates, which
    bounce (`bounce`).
    """
    transit: Literal["minimal", "ecmp"] = "minimal"
    """Whether switches send packets in transit by one port (`minimal`), or share them over all
    shortest paths as well (`ecmp`).
    """
    demand: Annotated[str, Field(min_length=1)] | None = None
    """A file of traffic that the shares are fitted to, or `worst-case`."""
    largest_share: Share = "1"
    """The largest share of a path, where shares are fitted to a demand."""
    on_missing: Literal["refuse", "minimal"] = "refuse"
    """Whether a policy that a target or node type cannot do is refused, or reduced to what it can.
    """

    def edge_disjoint(self, family: str) -> bool:
        """Whether no alternate may share a link with the minimal path.

        With `auto` that is so in families that construct their alternates: there a class has at
        most one alternate that shares a link with the minimal path, so little is lost. Where
        alternates are found by a search, most that serve many destinations share a link, and are
        kept. It is never so if packets are marked, as marked packets are spread over all other
        links.
        """
        if balance_named(self.balance).forwarding.marks:
            return False
        if self.disjoint == "auto":
            return family_of(family).constructed
        return self.disjoint == "edge"

    def forwarding(self, q: int | None, family: str) -> Forwarding:
        """Return the forwarding properties of this policy's tables.

        `Balance.chosen` may change them.

        Args:
            q: the order of the field; None without one. `policy_checks` checks that shares have
                values at it.
            family: of the topology.
        """
        balance_forwarding = balance_named(self.balance).forwarding
        forwarding = replace(
            balance_forwarding,
            disjoint=self.edge_disjoint(family),
            bounces=self.adjacent == "bounce" and balance_forwarding.has_alternates,
            every_hop=self.transit == EVERY_HOP and balance_forwarding.alternates == "shortest",
            protect=self.protect,
        )
        if self.minimal_share == EQUAL_COST:
            return forwarding
        minimal_share = share_value(self.minimal_share, q or 0)
        return replace(forwarding, weights="minimal-share", minimal_share=minimal_share)


class ManagementSpec(Model):
    """How switches are reached: the network of their management addresses."""

    length: Annotated[Whole, Field(ge=1, le=128)]
    """The length of the network's prefix."""
    gateway: Management | None = None
    """The default gateway of the network."""
    interface: PortName | None = None
    """The interface of management, in place of the system's usual one."""


class BaseSpec(Model):
    """What switches need besides forwarding."""

    management: ManagementSpec | None = None
    """How switches are reached."""
    ntp: tuple[Management, ...] = ()
    """Addresses of time servers."""
    syslog: tuple[Management, ...] = ()
    """Addresses of servers that take logs."""
    asn: AsNumber | None = None
    """The AS number of vertex 0, with BGP. Vertex V has this number plus V."""


class FabricSpec(Model):
    """A fabric."""

    name: Name
    """The name of the fabric."""
    topology: TopologySpec
    """The graph of its switches."""
    hosts_per_node: Annotated[Whole, Field(ge=0, le=1024)] = 1
    """The most hosts of a switch."""
    planes: Annotated[Whole, Field(ge=1, le=16)] = 1
    """Identical fabrics side by side, to each of which every host has a port."""
    addressing: AddressingSpec = AddressingSpec.model_construct()
    """Pools of addresses."""
    routing: RoutingSpec = RoutingSpec.model_construct()
    """The routing policy."""
    system: SystemName | None = None
    """The system of every switch. The inventory may name another one for a node type or a node."""
    control_plane: ControlPlaneSpec = ControlPlaneSpec.model_construct()
    """Settings of routers that have to be the same at both ends of a link."""
    base: BaseSpec = BaseSpec.model_construct()
    """What switches need besides forwarding."""
    vars: Vars = Field(default_factory=dict)
    """Variables of the user's own, which templates see."""
    inventory: Path | None = None
    """The file that describes the hardware. Without it, polarfab invents hardware that fits."""
    allocations: Path | None = None
    """The file that keeps vertices, addresses of links, labels of cables and AS numbers, so that
    the next compile gives the same ones."""
