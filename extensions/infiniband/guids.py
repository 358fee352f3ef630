"""GUIDs: the numbers by which InfiniBand knows the switches and the host adapters of a build.

Target opensm takes them from the inventory, or makes them up for a simulator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from inventory.problems import InputError, Problem, first_names

MADE_UP = 0x0250460000000000
"""The block of made-up GUIDs, locally administered (EUI-64, IEEE 802). The bits from `VERTEX_SHIFT`
on are the vertex, from 1. The bits below are 0 for a switch, and 2h + FIRST_HOST for its host h."""
VERTEX_SHIFT = 16
"""The bit at which the vertex begins in a made-up GUID."""
FIRST_HOST = 3
"""The low bits of a switch's host 0 in a made-up GUID."""
MOST_NAMED = 3
"""The most nodes or hosts that a message names."""


@dataclass(frozen=True, slots=True, eq=False)
class Guids:
    """The GUIDs of a fabric."""

    switch: NDArray[np.uint64]
    """uint64[S], the node GUID of each switch."""
    host: NDArray[np.uint64]
    """uint64[S, P], the port GUID of the host at each place of a switch; 0 where there is none."""

    @classmethod
    def of_inventory(cls, build: Build) -> Guids:
        """The GUIDs that the inventory gives.

        Raises:
            InputError: a node or a host has none there.
        """
        shape, hardware = build.wiring.host_port.shape, build.hardware
        switch = hardware.guid if hardware else ("",) * shape[0]
        host = hardware.host_guid if hardware else ("",) * (shape[0] * shape[1])
        if problems := [*_guid_problems(build, switch, host)]:
            raise InputError(problems)
        switch_number, host_number = (
            np.array([int(guid or "0", 16) for guid in guids], np.uint64)
            for guids in (switch, host)
        )
        is_cabled = build.wiring.host_port > 0
        return cls(switch_number, host_number.reshape(shape) * is_cabled)

    @classmethod
    def made_up(cls, build: Build) -> Guids:
        """GUIDs that are counted by vertex and host, for a simulator."""
        cabled = build.wiring.host_port > 0
        vertex = np.arange(1, len(cabled) + 1, dtype=np.uint64) << np.uint64(VERTEX_SHIFT)
        switch = vertex + np.uint64(MADE_UP)
        hosts = np.arange(cabled.shape[1], dtype=np.uint64)
        host = switch[:, None] + np.uint64(2) * hosts + np.uint64(FIRST_HOST)
        return cls(switch, np.where(cabled, host, np.uint64(0)))


def _guid_problems(
    build: Build, switch: tuple[str, ...], host: tuple[str, ...]
) -> Iterator[Problem]:
    """The problems of nodes and hosts that have no GUID in the inventory."""
    wiring, per_node = build.wiring, build.wiring.host_port.shape[1]
    nodes = [wiring.names[v] for v in np.flatnonzero(build.topology.present) if not switch[v]]
    cabled = np.flatnonzero(wiring.host_port.ravel())
    hosts = [
        f"{wiring.host_names[i]} at {wiring.names[i // per_node]}" for i in cabled if not host[i]
    ]
    for key, required, names in (
        ("nodes.guid", "the node GUID of every node", nodes),
        ("nodes.hosts.guid", "the port GUID of every host's adapter", hosts),
    ):
        if names:
            yield Problem(
                key=key,
                required=required,
                given=f"none in the inventory for {first_names(names, MOST_NAMED)}",
                todo="enter it there and compile again; for a simulator: `set guids=made-up`",
            )
