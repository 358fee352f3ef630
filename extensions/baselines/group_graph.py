"""Global links between the groups of a Dragonfly or a Megafly, and helpers for their edges.

Each of g groups has P global ports. Port t of group i is cabled to port P - 1 - t of group
i + (t mod (g - 1)) + 1 (mod g). This is the relative arrangement of Hastings et al., "Comparing
global link arrangements for Dragonfly networks" (CLUSTER 2015), which looks the same from every
group.

The global ports of a group belong to its a routers, h consecutive ones to each: P = a·h. A link
that leaves a group by router j arrives at router a - 1 - j of another group. If h < g, no two links
join the same two routers.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from compilers.topology.labelled_graph import Parameters
from inventory.problems import Problem

GROUP, PORT = 0, 1
"""Places on the last axis of `global_links`: the group of an end, and its global port there."""


def group_count(parameters: Parameters, ports: int) -> int:
    """How many groups there are: the parameter `groups`, by default the most that are possible.

    With the most groups, one link joins any two of them.

    Args:
        parameters: they may have `groups`.
        ports: how many global ports a group has.
    """
    return int(parameters.get("groups", ports + 1))


def global_links(count: int, ports: int) -> NDArray[np.int64]:
    """The global links, int64[count·ports / 2, 2, 2]: link, end of the link, and GROUP or PORT.

    Args:
        count: how many groups there are.
        ports: how many global ports each group has.
    """
    group, port = np.divmod(np.arange(count * ports), ports)
    far_group, far_port = (group + port % (count - 1) + 1) % count, ports - 1 - port
    ends = np.stack((group, port, far_group, far_port), axis=1).reshape(-1, 2, 2)
    # Each link once: from the end with the lower number of its port among all ports.
    is_lower_end = group * ports + port < far_group * ports + far_port
    links: NDArray[np.int64] = ends[is_lower_end]
    return links


def check_groups(parameters: Parameters, ports: int, router_ports: int) -> list[Problem]:
    """Problems unless all pairs of groups have equally many links, and no two routers have two.

    Args:
        parameters: they may have `groups`.
        ports: how many global ports a group has.
        router_ports: how many global ports a router has.
    """
    count = group_count(parameters, ports)
    if ports % (count - 1) == 0 and count > router_ports:
        return []
    small_divisors = [number for number in range(1, isqrt(ports) + 1) if ports % number == 0]
    divisors = {*small_divisors, *(ports // number for number in small_divisors)}
    allowed = [number + 1 for number in sorted(divisors) if number >= router_ports]
    nearest = sorted(allowed, key=lambda other: abs(other - count))[:3]
    return [
        Problem(
            key="groups",
            required=f"above h = {router_ports}, with groups - 1 dividing a group's {ports} "
            "global ports",
            given=str(count),
            todo=f"the nearest are {', '.join(map(str, sorted(nearest)))}",
        )
    ]


def complete(size: int) -> NDArray[np.int64]:
    """The edges of the complete graph, int64[size·(size - 1) / 2, 2].

    >>> complete(3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    return np.stack(np.triu_indices(size, 1), axis=1)


def copies(edges: NDArray[np.int64], count: int, step: int) -> NDArray[np.int64]:
    """The edges of `count` groups of `step` vertices each, in all of which `edges` are the same.

    >>> copies(np.array([[0, 1]]), count=2, step=3).tolist()
    [[0, 1], [3, 4]]
    """
    return (np.arange(count)[:, None, None] * step + edges).reshape(-1, 2)
