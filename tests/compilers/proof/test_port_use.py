"""The use of a port, known by its number, where numbers are large or no port's."""

from __future__ import annotations

import numpy as np

from compilers.proof.soundness.port_use import ABSENT, FABRIC, FREE, HOST, PortUse

PORTS = 300


def some() -> PortUse:
    """Two switches of 300 ports: a host at port 44, a cable at port 300 of the second."""
    use = np.full((2, PORTS + 2), FREE, np.uint8)
    use[:, [0, -1]] = ABSENT
    use[:, 44] = HOST
    use[1, PORTS] = FABRIC
    link = np.full(use.shape, -1, np.int32)
    link[1, PORTS] = 7
    return PortUse(use, link)


def test_numbers_of_no_port_are_absent() -> None:
    ports = np.array([[0, -1, PORTS + 1, PORTS + 9], [0, -300, PORTS + 1, 32000]])
    assert (some().at(ports) == ABSENT).all()
    assert (some().links(ports) == -1).all()


def test_ports_beyond_a_byte_are_themselves() -> None:
    ports = np.array([[44, PORTS], [44, PORTS]])
    assert some().at(ports).tolist() == [[HOST, FREE], [HOST, FABRIC]]
    assert some().links(ports).tolist() == [[-1, -1], [-1, 7]]


def test_words_say_what_a_port_is() -> None:
    words = [some().words(1, port) for port in (0, 1, 44, PORTS, PORTS + 1, PORTS + 2)]
    assert words == [
        "no port",
        "port 1, without a cable",
        "port 44, a host port",
        "port 300, a fabric port",
        "port 301, which its type has not",
        "port 302, which its type has not",
    ]
