"""How each system says what a BGP speaker is: templates of statements (`statements`).

They are next to a template of the text, in `templates/*/FILE.speaker`: a line is one, and `[FIELD]`
begins those of a field of `BgpDialect`. Targets with the same file have the same words.
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
    """A system's words; every template has to be there where nothing else is said.

    once: with the fields number, id and most, the length of the longest path, or less, one less.
    family: of each address family, the first one where there is such a family: pool, least, longest
    of its prefixes; group, of its neighbours, or of those of both where links have no addresses.
    several: where a family takes several paths, and wcmp where these say how many are behind them.
    via: where next hops of shares are announced, of their pool. own: a prefix that the switch
    announces. session: of each neighbour, the first one where there is such a neighbour: peer, far;
    unnumbered: the same where links have no addresses, and alone: of each family only then.
    override: policy, of a neighbour with one of its own. entry: place, list and metric of an entry
    of a policy; six: the rest of one for IPv6 over addresses. again: of each policy, the entry of
    paths over another neighbour, which its metric puts last; around: of each neighbour, the paths
    over it; anyof: of several, whose numbers are around.
    preferred: of each prefix of a list, the first one names it. everyone: of the entry for all
    other prefixes; foundby: of the same, where there are next hops of shares. bfd, watched: where
    BFD watches links, once and of each family. rooted: announces a prefix only while a route of its
    own has it. made: what makes a neighbour or a group, before which the system takes no other
    statement about it; none: the order is free. both: where there are sessions of both address
    families. links: of each link that BFD watches: port.
    """

    once: tuple[str, ...] = ()
    family: tuple[str, ...] = ()
    via: tuple[str, ...] = ()
    session: tuple[str, ...] = ()
    unnumbered: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    override: tuple[str, ...] = ()
    entry: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    around: tuple[str, ...] = ()
    anyof: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    several: tuple[str, ...] = ()
    wcmp: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    bfd: tuple[str, ...] = ()
    everyone: tuple[str, ...] = ()
    foundby: tuple[str, ...] = ()
    six: tuple[str, ...] = ()
    rooted: tuple[str, ...] | None = None
    made: tuple[str, ...] = ()
    both: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@lru_cache
def dialect(file: str) -> BgpDialect:
    """That of a file; an empty one where it says nothing of BGP."""
    return BgpDialect(**said_in(f"{file}.speaker"))


@lru_cache
def said_in(name: str) -> dict[str, tuple[str, ...]]:
    """The templates of statements in files of a name next to the templates, by their heads."""
    fields: dict[str, tuple[str, ...]] = {}
    lines = (exact_lines(read_exact(path)) for path in TEMPLATES.glob(f"*/{name}"))
    for line in chain.from_iterable(lines):
        if head := FIELD_HEAD.fullmatch(line):
            name = head[1]
            fields[name] = ()
        elif line and line[0] != "#":
            fields[name] += (line,)
    return fields
