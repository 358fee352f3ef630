"""How many channels keep the packets of a simulation free of deadlock, by the paths that they take.

A *channel* is a group of virtual channels. By a scheme, packets change channels on their way, so
that no cycle of full buffers can wait for itself (`compilers.proof.lossless.channels`):

- `hop`: at each link.
- `valley`: where a path turns from down to up, in an order of the switches.

That module counts the channels for the paths of the tables. This one counts those for packets that
take any shortest path.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.proof.lossless.channels import find_channels
from compilers.tables.build import Build
from compilers.topology.distance import BEYOND
from extensions.simulation.load_point import (
    INTERMEDIATE_POLICIES,
    OWN_PATH_POLICIES,
    SimulationSettings,
)
from extensions.simulation.simulated_network import SimulatedNetwork
from inventory.problems import InputError


def with_channels(
    build: Build, network: SimulatedNetwork, settings: SimulationSettings
) -> SimulationSettings:
    """The settings with as many channels as the scheme needs for the paths that packets take.

    By the scheme `single` packets take any virtual channel, and the settings stay as they are.

    Raises:
        InputError: there are fewer virtual channels.
    """
    if settings.scheme == "single":
        return settings
    count = channels_needed(build, network, settings)
    if count > settings.vcs:
        paths = "these paths" if settings.routing in OWN_PATH_POLICIES else "its tables"
        required = f"{count} virtual channels for scheme {settings.scheme}, as {paths} need"
        todo = f"`vcs {count}`, or `scheme single`, which may deadlock"
        raise InputError.of(required, str(settings.vcs), todo, key="vcs")
    return replace(settings, channels=count)


def channels_needed(build: Build, network: SimulatedNetwork, settings: SimulationSettings) -> int:
    """How many channels a scheme other than `single` needs for the paths of the settings."""
    if settings.routing in OWN_PATH_POLICIES and network.has_distances:
        return path_channels(network, settings.routing, settings.scheme)
    # The paths round a failure of these kinds are counted, too.
    kinds = ("link", "node") if settings.failures else ()
    # Where no number of channels is enough, packets have all virtual channels.
    count = find_channels(build, settings.scheme, kinds).count or settings.vcs
    # A packet over an intermediate takes two paths.
    return 2 * count if settings.routing in INTERMEDIATE_POLICIES else count


def path_channels(network: SimulatedNetwork, routing: str, scheme: str) -> int:
    """How many channels keep shortest paths free of deadlock, whichever of them packets take.

    Within a channel of `valley` every path rises and then falls; within a channel of `hop` there
    are no waits. So it is enough to count how often a path changes channels. A packet over an
    intermediate takes two paths, and needs twice as many channels.

    Args:
        network: the network with distances.
        routing: one of `OWN_PATH_POLICIES`.
        scheme: `hop` or `valley` (`compilers.proof.lossless.channels`).
    """
    ends = np.flatnonzero(network.endpoints)
    if scheme == "hop":
        links = network.distance[np.ix_(ends, ends)]
        count = int(links[links < BEYOND].max(initial=1))
    else:
        count = 1 + int(_valleys(network)[np.ix_(ends, ends)].max(initial=0))
    return 2 * count if routing in INTERMEDIATE_POLICIES else count


def _valleys(network: SimulatedNetwork) -> NDArray[np.int8]:
    """The most valleys of a shortest path, int8[S, S] by its first and its last switch.

    A valley is where a path falls and then rises. Paths of 1, 2, … links are computed in turn: a
    path begins with a link, and goes on with a path that is one link shorter. That path has one
    valley more for a packet that fell over the link, if it begins by rising.
    """
    distance, far = network.distance, network.far
    up = network.is_rising.reshape(network.switches, network.ports)[
        :, : network.links_a_switch
    ].astype(np.bool_)
    # The most valleys of the paths of packets that rose to the first switch, or fell to it.
    risen: NDArray[np.int8] = np.zeros(distance.shape, np.int8)
    fallen = risen.copy()
    for level in range(1, int(distance[distance < BEYOND].max(initial=0)) + 1):
        at_level = distance == level
        for k in range(network.links_a_switch):
            # [S, S], the pairs for which link k of the first switch begins a shortest path.
            is_nearer = at_level & (distance[far[:, k]] == level - 1) & (far[:, k] >= 0)[:, None]
            rises = up[:, k, None]
            after = np.where(rises, risen[far[:, k]], fallen[far[:, k]])
            risen = np.where(is_nearer, np.maximum(risen, after), risen)
            fallen = np.where(is_nearer, np.maximum(fallen, after + rises), fallen)
    return risen
