"""The reader of a host's rendered file of SRv6 paths, host.batch for `ip -batch`.

A *carrier* is the IPv6 address that names a path by uSIDs (`carrier_parts`). For each destination a
host has a route to a nexthop object of the kernel. The object puts a header with a carrier before
packets, or it is a group that shares packets among such objects by weight. The result,
`HostSegments`, is what `segment_paths` follows and `carrier_check` compares.

These are the lines that the reader knows:

    nexthop replace id 1000000 encap seg6 mode encap.red segs CARRIER via ADDRESS dev eth0 …
    nexthop replace id 1000000003 group 1000000,2/1000001,1 protocol 80
    route replace fd00:0:0:5::2/128 nhid 1000000003 protocol 80
    route replace local PREFIX encap seg6local action End.DT6 table local dev lo table main …

All end in `protocol 80`. The last one is the prefix of the host's own uSIDs, at which it takes the
outer header off.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from socket import AF_INET6, inet_pton
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import bare, exact_number, exact_words
from compilers.readers.text_lines import Integers, TextLines
from extensions.host_paths.carrier_parts import MOST_USIDS, Usids, prefix_length, read_carrier

NEXTHOP = "nexthop replace id "
"""The beginning of the line of a nexthop object. Its id follows."""
ENCAPSULATION = "encap seg6 mode encap.red segs "
"""What follows the id of an object that puts a header before packets. The carrier follows."""
GROUP = re.compile(r"group ([0-9]+,[1-9][0-9]{0,9}/)*[0-9]+,[1-9][0-9]{0,9} protocol 80")
"""What follows the id of an object that shares packets: `group ID,WEIGHT/ID,WEIGHT protocol 80`."""
PROTOCOL = ["protocol", "80"]
"""The last words of each line: the routing protocol number of polarfab's routes."""
DECAPSULATION = exact_words(
    "encap seg6local action End.DT6 table local dev lo table main protocol 80"
)
"""The words that follow the prefix at which the host takes the outer header off."""


@dataclass(frozen=True, slots=True, eq=False)
class HostSegments:
    """The paths of a host: P routes, which choose among n carriers."""

    file: Path
    """The file that states them."""
    prefix: list[str]
    """The prefix of each of the P routes."""
    line: list[int]
    """The line of each of the P routes."""
    own_usids: Usids
    """The uSIDs of the prefix for which the host takes the outer header off; () where its switch
    does."""
    usids: Integers
    """int64[n, MOST_USIDS + 1]: the uSIDs of each carrier, then zeros. The last column is 0, so
    that a zero follows even the longest path."""
    route: Integers
    """int64[n]: the index of the route that each carrier belongs to."""
    weight: Integers
    """int64[n]: the weight of each carrier in its route."""


def read_host(
    file: Path, differences: DifferenceList, gateway: str, interface: str, block: bytes
) -> HostSegments:
    """Read the paths of a host.

    Args:
        file: OUT/hosts/<host>/host.batch.
        differences: gets lines that are no nexthop objects and no routes.
        gateway: the address of its switch.
        interface: the interface to its switch.
        block: the block of the uSIDs, four bytes.

    Raises:
        OSError: the file cannot be read.
    """
    reader = _HostReader(file, differences, block)
    lines = TextLines.read(file)
    has_strange_characters = lines.strange()
    for line, text in lines[has_strange_characters]:
        if bare(text)[:1] != "#":
            differences.add_unread(file, line, text)
    lines = lines[~has_strange_characters]
    is_nexthop = lines.begin_with(NEXTHOP)
    # `split` cuts the known beginning off each line, and the rest at its first blank.
    ids, definitions = lines[is_nexthop].split(len(NEXTHOP))
    has_carrier = definitions.begin_with(ENCAPSULATION)
    next_hop = ["via", gateway, "dev", interface, *PROTOCOL]
    reader.read_carriers(ids[has_carrier], definitions[has_carrier], next_hop)
    reader.read_groups(ids[~has_carrier], definitions[~has_carrier])
    for line, text in lines[~is_nexthop]:
        if bare(text) and bare(text)[0] != "#":
            reader.read_route(text, line)
    return reader.host()


class _Nexthop(NamedTuple):
    """A nexthop object: the carriers among which it shares packets, and their weights."""

    carriers: Sequence[int]
    """The rows of the carriers in `_HostReader.usids`."""
    weights: Sequence[int]
    """The weight of each carrier."""


class _Route(NamedTuple):
    """A route to a nexthop object."""

    nexthop_id: str
    """The id of the object."""
    line: int
    """The line of the route."""


class _HostReader:
    """The reading of a host's file: first the carriers, then the groups of them, then the routes.

    An object that a line uses has to be defined on an earlier line, as `ip -batch` runs the lines
    in their order.
    """

    def __init__(self, file: Path, differences: DifferenceList, block: bytes) -> None:
        self.file, self.differences, self.block = file, differences, block
        self.own_usids: Usids = ()
        """See `HostSegments.own_usids`."""
        self.usids = np.zeros((0, MOST_USIDS + 1), np.int64)
        """See `HostSegments.usids`; there is a row for each carrier of the file."""
        self.nexthops: dict[str, _Nexthop] = {}
        """The nexthop objects by id."""
        self.nexthop_lines: dict[str, int] = {}
        """The line of each nexthop object, by id."""
        self.routes: dict[str, _Route] = {}
        """The routes by prefix."""

    def read_carriers(self, ids: TextLines, definitions: TextLines, next_hop: list[str]) -> None:
        """Read nexthop objects that put a header with a carrier before packets.

        Args:
            ids: the ids of the objects.
            definitions: what follows the ids on their lines.
            next_hop: the words that have to follow the carrier.
        """
        addresses, ends = definitions.split(len(ENCAPSULATION))
        # Most lines end alike, so each different end is compared once.
        different_ends, end_of_line = ends.different_texts()
        is_next_hop = [exact_words(end) == next_hop for end in different_ends]
        has_next_hop = np.array(is_next_hop, np.bool_)[end_of_line]
        # The eight 16-bit groups of each address: two of the block, six of uSIDs.
        packed = b"".join(_packed(address) for address in addresses.texts())
        groups = np.frombuffer(packed, ">u2").reshape(-1, 8).astype(np.int64)
        block_groups, usids = groups[:, :2], groups[:, 2:]
        is_in_block = (block_groups == np.frombuffer(self.block, ">u2")).all(axis=1)
        has_gap = ((usids[:, :-1] == 0) & (usids[:, 1:] > 0)).any(axis=1)
        is_correct = has_next_hop & is_in_block & (usids[:, 0] > 0) & ~has_gap
        for line, text in definitions[~is_correct]:
            self.differences.add_unread(self.file, line, text)
        self.usids = np.pad(usids, ((0, 0), (0, 1)))  # with the last column of zeros
        nexthops = [_Nexthop((row,), (1,)) for row in range(len(usids))]
        self._add_nexthops(ids, nexthops, is_correct)

    def read_groups(self, ids: TextLines, definitions: TextLines) -> None:
        """Read nexthop objects that share packets among the objects of carriers above them.

        Args:
            ids: the ids of the groups.
            definitions: what follows the ids on their lines.
        """
        groups: list[_Nexthop] = []
        for line, text in definitions:
            member_texts = text.removeprefix("group ").partition(" ")[0].split("/")
            members = [member.partition(",")[::2] for member in member_texts]
            is_defined = GROUP.fullmatch(text) and all(
                self._is_defined_before(member_id, line) for member_id, _ in members
            )
            if is_defined:
                carriers = [self.nexthops[member_id].carriers[0] for member_id, _ in members]
                groups.append(_Nexthop(carriers, [exact_number(weight) for _, weight in members]))
            else:
                groups.append(_Nexthop((), ()))
                self.differences.add_unread(self.file, line, text)
        is_correct = np.array([bool(group.carriers) for group in groups], np.bool_)
        self._add_nexthops(ids, groups, is_correct)

    def _is_defined_before(self, nexthop_id: str, line: int) -> bool:
        """Whether there is a nexthop object of this id, on an earlier line."""
        return self.nexthop_lines.get(nexthop_id, line) < line

    def _add_nexthops(
        self, ids: TextLines, nexthops: Sequence[_Nexthop], is_correct: NDArray[np.bool_]
    ) -> None:
        """Add the nexthop objects that are correct; a second one of an id is a difference."""
        for (line, nexthop_id), nexthop, correct in zip(
            ids, nexthops, is_correct.tolist(), strict=True
        ):
            if nexthop_id in self.nexthops:
                self.differences.add_unread(self.file, line, f"{NEXTHOP}{nexthop_id} again")
            elif correct:
                self.nexthops[nexthop_id], self.nexthop_lines[nexthop_id] = nexthop, line

    def read_route(self, text: str, line: int) -> None:
        """Read a route to a nexthop object, or one that takes the outer header off."""
        match exact_words(text):
            case ["route", "replace", "local", prefix, *rest] if (
                rest == DECAPSULATION and not self.own_usids
            ):
                if self._read_own_prefix(prefix):
                    return
            case ["route", "replace", prefix, "nhid", nexthop_id, *rest] if (
                rest == PROTOCOL
                and self._is_defined_before(nexthop_id, line)
                and prefix not in self.routes
            ):
                self.routes[prefix] = _Route(nexthop_id, line)
                return
        self.differences.add_unread(self.file, line, text)

    def _read_own_prefix(self, prefix: str) -> bool:
        """Note the uSIDs of the host's own prefix; returns whether it is a prefix of the block.

        The uSIDs of another block are noted as well. Then only this line is a difference, and the
        paths are still compared for a host that takes the outer header off.
        """
        address, _, length = prefix.partition("/")
        try:
            block, self.own_usids = read_carrier(address)
        except (OSError, ValueError):
            return False
        return block == self.block and length == prefix_length(self.own_usids)

    def host(self) -> HostSegments:
        """The paths of the host, once all lines were read."""
        nexthops = [self.nexthops[route.nexthop_id] for route in self.routes.values()]
        carriers = list(chain.from_iterable(nexthop.carriers for nexthop in nexthops))
        weights = list(chain.from_iterable(nexthop.weights for nexthop in nexthops))
        counts = [len(nexthop.carriers) for nexthop in nexthops]
        return HostSegments(
            file=self.file,
            prefix=list(self.routes),
            line=[route.line for route in self.routes.values()],
            own_usids=self.own_usids,
            usids=self.usids[np.array(carriers, np.int64)],
            route=np.repeat(np.arange(len(nexthops)), counts),
            weight=np.array(weights, np.int64),
        )


def _packed(address: str) -> bytes:
    """The bytes of an IPv6 address; zeros, which name no path, for a text that is no address."""
    try:
        return inet_pton(AF_INET6, address)
    except OSError:
        return bytes(16)
