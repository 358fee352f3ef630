"""The use of every port of a fabric: a cable to a switch, a host, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.wiring import Wiring

ABSENT, FREE, FABRIC, HOST = range(4)
WORDS = (
    "port {}, which its type has not",
    "port {}, without a cable",
    "port {}, a fabric port",
    "port {}, a host port",
)
Ports = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class PortUse:
    """The ports of S switches by their numbers.

    use: uint8[S, ports + 2], ABSENT, FREE, FABRIC or HOST; port 0 and the last are ABSENT. link:
    int32[S, ports + 2], the place in `Wiring.port`, -1 where there is no cable to a switch.
    """

    use: NDArray[np.uint8]
    link: NDArray[np.int32]

    @classmethod
    def of(cls, wiring: Wiring) -> PortUse:
        """The ports of a wiring whose node types exist; numbers beyond them are left out."""
        count = np.array([len(names) for names in wiring.port_names])[wiring.node_type]
        number = np.arange(int(count.max(initial=0)) + 2)
        there = (number > 0) & (number <= count[:, None])
        result = cls(there.astype(np.uint8), np.full(there.shape, -1, np.int32))
        for ports, use in ((wiring.port, FABRIC), (wiring.host_port, HOST)):
            switch, place = np.nonzero(result.at(ports) != ABSENT)
            result.use[switch, ports[switch, place]] = use
            if use == FABRIC:
                result.link[switch, ports[switch, place]] = place
        return result

    def at(self, ports: Ports) -> NDArray[np.uint8]:
        """The use of ports[s, …] of each switch s, in the same shape."""
        return self._of(self.use, ports)

    def links(self, ports: Ports) -> NDArray[np.int32]:
        """The link behind ports[s, …] of each switch s, -1 where there is none."""
        return self._of(self.link, ports)

    def _of(self, table: NDArray[Any], ports: Ports) -> NDArray[Any]:
        switch = np.arange(len(ports)).reshape(-1, *[1] * (ports.ndim - 1))
        found: NDArray[Any] = table[switch, self.known(ports)]
        return found

    def known(self, ports: Ports) -> NDArray[np.intp]:
        """The ports, those that no type has as one that is ABSENT."""
        return np.clip(ports.astype(np.intp), 0, self.use.shape[1] - 1)

    def words(self, switch: int, port: int) -> str:
        """A port and its use, as messages say it."""
        if port == 0:
            return "no port"
        known = self.known(np.array(port))
        return WORDS[int(self.use[switch, known])].format(port)
