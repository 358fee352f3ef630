"""Byte counters of route rows, by their prefixes, from the reply to a request for flows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.targets.openflow.bundled_blocks import heads
from compilers.targets.openflow.flow_tables import RowKind, cookie
from compilers.targets.openflow.message_parts import Block
from compilers.targets.openflow.protocol import FIELDS, FLOW_STATS, OXM, padded
from controller.openflow.multipart import blocks

HALVES = 8
"""Bytes of an IPv6 address that tell its block."""


class RouteKeys:
    """The prefixes of a fabric, to be found by what rows match.

    ipv4, ipv6: the networks and lengths of `Addressing.ipv4_prefixes` and `ipv6_prefixes`; None
    where there are none.
    """

    def __init__(
        self,
        ipv4: tuple[NDArray[np.uint32], NDArray[np.uint8]],
        ipv6: tuple[NDArray[np.uint64], NDArray[np.uint8]] | None,
    ) -> None:
        self.count = len(ipv4[0])
        self._families = {FIELDS["ipv4_dst"][:2]: _Family.of(*ipv4)}
        if ipv6 is not None:
            self._families[FIELDS["ipv6_dst"][:2]] = _Family.of(*ipv6)

    def bytes_of(self, body: bytes) -> NDArray[np.int64]:
        """int64[P]: the bytes that the rows of each prefix have carried, over both families.

        Raises:
            Malformed: the reply cannot be read.
        """
        total = np.zeros(self.count, np.int64)
        for block in blocks(body, padded(FLOW_STATS.size)):
            head = heads(block, FLOW_STATS)
            routes = head["cookie"] == cookie(RowKind.ROUTE)
            if routes.any():
                number, known = self._numbers(block[routes])
                count = head["bytes"][routes].astype(np.int64)
                np.add.at(total, number[known], count[known])
        return total

    def _numbers(self, block: Block) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """int64[n], bool[n]: the prefix of each row, and whether there is such a one."""
        place = FLOW_STATS.size
        while place + OXM.size <= block.shape[1]:
            of_row = heads(block, OXM, place)
            space, field, size = of_row[0].tolist()
            if family := self._families.get((space, field >> 1)):
                value = block[:, place + OXM.size :][:, :size]
                number, known = family.find(value, bool(field & 1))
                return number, known & (of_row == of_row[0])
            place += OXM.size + size
        return np.zeros(len(block), np.int64), np.zeros(len(block), np.bool_)


class _Family:
    """Prefixes of a family, in the order of their keys: the network, then the length."""

    def __init__(self, network: NDArray[np.uint64], length: NDArray[np.uint8]) -> None:
        self.order = np.lexsort((length, network))
        self.network, self.length = network[self.order], length[self.order]
        self.longest = int(length.max(initial=0))

    @classmethod
    def of(cls, network: NDArray[np.integer], length: NDArray[np.uint8]) -> _Family:
        return cls(network.astype(np.uint64), length)

    def find(
        self, value: NDArray[np.uint8], masked: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The number of each prefix, as bytes of a field, and whether there is such a one."""
        size = value.shape[1] // (2 if masked else 1)
        network = _number(value[:, : min(size, HALVES)])
        length = np.full(len(value), min(8 * size, 8 * HALVES))
        if masked:
            length = np.unpackbits(value[:, size:], axis=1).sum(axis=1)
        low = np.searchsorted(self.network, network, side="left")
        # A supernode and its first member have one network; few lengths, so one step or none.
        found, known = np.zeros(len(value), np.int64), np.zeros(len(value), np.bool_)
        for step in range(2):
            at = np.minimum(low + step, len(self.network) - 1)
            good = (self.network[at] == network) & (self.length[at] == length)
            found[good], known[good] = self.order[at[good]], True
        return found, known


def _number(octets: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """uint64[n]: big-endian octets as numbers."""
    result = np.zeros(len(octets), np.uint64)
    for column in octets.T:
        result = (result << np.uint64(8)) | column
    return result
