"""The statements that configure a BGP speaker, in the words of each system.

The statements are data: the file `templates/SYSTEM/FILE.speaker` has those of configuration FILE. A
line is a statement with fields (`statements`), such as `router bgp <number>`. A line `[session]`
says that the statements below it belong to the field `session` of `BgpDialect`:

    [session]
    router bgp <number> / neighbor <peer> peer-group <group>
    router bgp <number> / neighbor <peer> remote-as <far>

Systems that share a file name, as Linux and SONiC share `frr.conf`, share the dialect.
`bgp_speaker` reads a configuration by its dialect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from compilers.readers.exact_text import exact_lines, read_exact
from templates import TEMPLATES

FIELD_HEAD = re.compile(r"\[(\w+)\]")
"""The head of a part of a `.speaker` file, such as `[session]`."""


@dataclass(frozen=True, slots=True)
class BgpDialect:
    """The statements of one system about BGP.

    A configuration needs the statements of every field, unless the field says when they are needed.
    A field may be for each family, neighbour or prefix. Then a configuration has all statements of
    the field once for each of them. The first statement of the field tells how many there are: each
    line that fits the first statement of `session` is of another neighbour. Fields that a system
    has no statements for are empty.
    """

    # For the whole switch and its own prefixes

    switch: tuple[str, ...] = ()
    """Statements for the whole switch. Fields: `number` (its AS), `id` (its router id), and `most`,
    the length of the longest path that is accepted, or `less`, one less than that."""
    dual_stack: tuple[str, ...] = ()
    """Statements for the whole switch, where both families have sessions."""
    bfd_switch: tuple[str, ...] = ()
    """Statements for the whole switch, where BFD watches links."""
    announced_prefix: tuple[str, ...] = ()
    """Statements for each prefix that the switch announces as its own. Field: `prefix`."""
    announces_routed_only: bool = False
    """Whether the system announces a prefix only while a route of its own leads there. The file
    says so by the head `[needs_route]`, below which there are no statements."""

    # For each address family

    family: tuple[str, ...] = ()
    """Statements for each address family. Fields: `pool`, `least` and `longest` (the accepted
    prefixes and their lengths), and `group`, the peer group: one for each family, or one for both
    families where links have no addresses."""
    next_hop_pool: tuple[str, ...] = ()
    """Statements that accept the pool of next hops of static routes, for each family in which
    neighbours announce such next hops."""
    unnumbered_family: tuple[str, ...] = ()
    """Statements for each family, where links have no addresses."""
    bfd_family: tuple[str, ...] = ()
    """Statements for each family, where BFD watches links."""
    gtsm_family: tuple[str, ...] = ()
    """Statements for each family, where packets of a session have to come from the neighbour itself
    (GTSM, RFC 5082)."""
    multipath: tuple[str, ...] = ()
    """Statements for each family that uses several paths to a prefix at once."""
    wcmp: tuple[str, ...] = ()
    """Statements for each family, where announcements say how many paths are behind them."""

    # For each neighbour or link

    session: tuple[str, ...] = ()
    """Statements for each neighbour with an address. Fields: `peer` (its address), `far` (its AS),
    and in its description `host` (its name) and `plug` (its port)."""
    unnumbered: tuple[str, ...] = ()
    """Statements for each neighbour on a link without addresses; `peer` is the port."""
    neighbour_policy: tuple[str, ...] = ()
    """Statements for each neighbour with a policy of its own. Field: `policy`."""
    bfd_link: tuple[str, ...] = ()
    """Statements for each link that BFD watches. Field: `port`."""

    # For each policy and its entries

    policy_entry: tuple[str, ...] = ()
    """Statements for each entry of a policy. Fields: `place`, `list` (of prefixes) and `metric`."""
    preferred_prefix: tuple[str, ...] = ()
    """Statements for each prefix of a prefix list. Field: `prefix`."""
    next_hop_entry: tuple[str, ...] = ()
    """Statements for each policy, where neighbours announce next hops of static routes."""
    ipv6_entry: tuple[str, ...] = ()
    """Statements for each entry of a policy for IPv6, where links have addresses."""
    detour_filter: tuple[str, ...] = ()
    """The statement that recognises detours over one neighbour, for each neighbour."""
    any_detour_filter: tuple[str, ...] = ()
    """The statements that recognise detours over one of several neighbours, whose AS numbers are in
    the field `around`."""
    detour_entry: tuple[str, ...] = ()
    """Statements for the entry of detours in each policy. A detour is a path over another
    neighbour; its metric makes it the last choice."""
    default_entry: tuple[str, ...] = ()
    """Statements for each policy: its entry for prefixes that no other entry names."""

    # The order of statements

    created_first: tuple[str, ...] = ()
    """The statements that create a neighbour or a group, where these have to come before all other
    statements about it. Empty: the order is free."""


@lru_cache
def dialect(file: str) -> BgpDialect:
    """The dialect of configurations of a file name; its fields are empty without a `.speaker` file.

    >>> dialect("frr.conf").session[1]
    'router bgp <number> / neighbor <peer> remote-as <far>'
    """
    statements = dict(statement_templates(f"{file}.speaker"))
    announces_routed_only = statements.pop("needs_route", None) is not None
    return BgpDialect(announces_routed_only=announces_routed_only, **statements)


@lru_cache
def statement_templates(name: str) -> dict[str, tuple[str, ...]]:
    """The statements in all files `templates/*/NAME`, by the heads `[…]` that they are below."""
    fields: dict[str, tuple[str, ...]] = {}
    lines = (exact_lines(read_exact(path)) for path in TEMPLATES.glob(f"*/{name}"))
    for line in chain.from_iterable(lines):
        if head := FIELD_HEAD.fullmatch(line):
            field = head[1]
            fields[field] = ()
        elif line and line[0] != "#":
            fields[field] += (line,)
    return fields
