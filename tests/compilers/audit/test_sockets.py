"""Sockets of ports with several, nodes that stay where they are, and planes that are merged."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from compilers.audit.merged_planes import merge_planes
from compilers.audit.resolve import ObservedCables
from compilers.audit.socket_numbers import SocketNumbers
from compilers.audit.wiring_audit import swapped_cycles
from tests.compilers.routed import routed


def test_ports_of_hosts_have_all_their_sockets() -> None:
    """Four ports for links, one for a host with two sockets, one with one."""
    wiring = routed(q=3, hosts=2).wiring
    names = wiring.port_names[0]
    sockets = tuple((name, f"{name}b") if n in (0, 4) else (name,) for n, name in enumerate(names))
    finder = SocketNumbers(wiring, (SimpleNamespace(sockets=sockets),))  # type: ignore[arg-type]
    places = [1, 2, 3, 4, 5, 6, 7, 8]  # 1 and 2 of the first port, 6 and 7 of the first host's
    assert finder.width == len(places) + 1
    assert finder.host_sockets() == {v * 9 + s for v in range(13) for s in (6, 7, 8)}
    single = SocketNumbers(wiring)
    assert single.host_sockets() == {v * 7 + s for v in range(13) for s in (5, 6)}


def test_a_node_stays_where_another_place_saves_no_moves() -> None:
    planned = frozenset({(11, 21), (12, 31), (13, 41), (14, 51)})
    half = frozenset({(21, 61), (31, 62), (63, 71), (64, 81)})
    more = frozenset({(21, 61), (31, 62), (41, 63), (64, 81)})
    for present in (half, more):
        wired = ObservedCables(present, frozenset(), frozenset(), (), ())
        assert swapped_cycles(planned, wired, 10, [0] * 10) == ()


def test_links_stay_in_their_plane() -> None:
    build = routed(q=2)
    wiring, _ = merge_planes([build, replace(build), build])
    for plane in range(3):
        far = wiring.far[7 * plane : 7 * plane + 7]
        own = build.wiring.far
        assert (far == np.where(own >= 0, own + 7 * plane, -1)).all()
