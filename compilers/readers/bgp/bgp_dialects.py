"""The statements that make a BGP speaker, in the words of each system.

They are data: `templates/SYSTEM/FILE.speaker` stands next to the template of configuration FILE. A
line is a statement with fields (`statements`), such as `router bgp <number>`. A line `[session]`
says that the statements below it belong to the field `session` of `BgpDialect`. Systems that share
a file name, as Linux and SONiC share `frr.conf`, share the dialect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from compilers.readers.exact_text import exact_lines, read_exact
from templates import TEMPLATES

FIELD_HEAD = re.compile(r"\[(\w+)\]")


@dataclass(frozen=True, slots=True)
class BgpDialect:
    """The statements of one system about BGP.

    A configuration has to have all of them, unless a field says when they are needed. Where a field
    is repeated (for every family, neighbour or prefix), its first statement says how often.
    """

    once: tuple[str, ...] = ()
    """For the whole switch. Fields: `number` (its AS), `id` (its router id), and `most`, the length
    of the longest path that is accepted, or `less`, one less than that."""
    family: tuple[str, ...] = ()
    """For each address family. Fields: `pool`, `least` and `longest` (the accepted prefixes and
    their lengths), and `group`, the peer group: one a family, or one for both where links have no
    addresses."""
    via: tuple[str, ...] = ()
    """For each family in which neighbours announce next hops of static routes: their pool."""
    session: tuple[str, ...] = ()
    """For each neighbour with an address. Fields: `peer`, its address, `far`, its AS, and in its
    description `host`, its name, and `plug`, its port."""
    unnumbered: tuple[str, ...] = ()
    """For each neighbour on a link without addresses; `peer` is the port."""
    alone: tuple[str, ...] = ()
    """For each family, where links have no addresses."""
    override: tuple[str, ...] = ()
    """For each neighbour with a policy of its own: `policy`."""
    entry: tuple[str, ...] = ()
    """For each entry of a policy. Fields: `place`, `list` (of prefixes) and `metric`."""
    again: tuple[str, ...] = ()
    """For each policy: the entry of detours (paths over another neighbour), whose metric makes them
    the last choice."""
    around: tuple[str, ...] = ()
    """For each neighbour: the statement that recognises detours over it."""
    anyof: tuple[str, ...] = ()
    """The statements that recognise detours over one of several neighbours, whose AS numbers are in
    the field `around`."""
    preferred: tuple[str, ...] = ()
    """For each prefix of a list: `prefix`."""
    watched: tuple[str, ...] = ()
    """For each family, where BFD watches links."""
    secured: tuple[str, ...] = ()
    """For each family, where packets of a session have to come from the neighbour itself."""
    several: tuple[str, ...] = ()
    """For each family that uses several paths to a prefix at once."""
    wcmp: tuple[str, ...] = ()
    """For each family, where announcements say how many paths are behind them."""
    own: tuple[str, ...] = ()
    """For each prefix that the switch announces: `prefix`."""
    bfd: tuple[str, ...] = ()
    """For the whole switch, where BFD watches links."""
    everyone: tuple[str, ...] = ()
    """For each policy: the entry of all prefixes without one of their own."""
    foundby: tuple[str, ...] = ()
    """For each policy, where neighbours announce next hops of static routes."""
    six: tuple[str, ...] = ()
    """For each entry of a policy for IPv6, where links have addresses."""
    rooted: tuple[str, ...] | None = None
    """Empty where the system announces a prefix only while a route of its own leads there. None:
    it announces the prefix in any case."""
    made: tuple[str, ...] = ()
    """The statements that make a neighbour or a group, where the system takes no other statement
    about it before. Empty: the order is free."""
    both: tuple[str, ...] = ()
    """For the whole switch, where both families have sessions."""
    links: tuple[str, ...] = ()
    """For each link that BFD watches: `port`."""


@lru_cache
def dialect(file: str) -> BgpDialect:
    """The dialect of configurations of this name; all its fields are empty without a `.speaker`.

    >>> dialect("frr.conf").session[1]
    'router bgp <number> / neighbor <peer> remote-as <far>'
    """
    return BgpDialect(**statement_templates(f"{file}.speaker"))


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
