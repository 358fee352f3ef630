"""Global links between the groups of a Dragonfly or a Megafly, and helpers for their edges.

Each of g groups has P global ports. Port t of group i is cabled to port P - 1 - t of group
i + (t mod (g - 1)) + 1 (mod g). This is the relative arrangement of Hastings et al., "Comparing
global link arrangements for Dragonfly networks" (CLUSTER 2015), which looks the same from every
group. In a group, a routers have h consecutive global ports each, so
P = a·h. A link that leaves a group by its router j arrives at router a - 1 - j of another group. No
two links join the same routers as long as h < g.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology.labelled_graph import Parameters
from inventory.problems import Problem

GROUP, PORT = 0, 1
"""Places on the last axis of `global_links`: the group of an end, and its global port there."""


def groups(parameters: Parameters, ports: int) -> int:
    """The parameter `groups`; by default the largest number, one link between any two groups."""
    return int(parameters.get("groups", ports + 1))


def global_links(count: int, ports: int) -> NDArray[np.int64]:
    """The global links, int64[count·ports / 2, 2, 2]: link, end of the link, and GROUP or PORT.

    Args:
        count: how many groups there are.
        ports: how many global ports each group has.
    """
    group, port = np.divmod(np.arange(count * ports), ports)
    far = (group + port % (count - 1) + 1) % count
    ends = np.stack((group, port, far, ports - 1 - port), axis=1).reshape(-1, 2, 2)
    # Each link once: from the end with the lower number of its port among all ports.
    from_lower = group * ports + port < far * ports + ends[:, 1, PORT]
    links: NDArray[np.int64] = ends[from_lower]
    return links


def check_groups(parameters: Parameters, ports: int, router_ports: int) -> list[Problem]:
    """Problems unless as many links join any two groups, and no two links join two routers.

    Args:
        parameters: they may have `groups`.
        ports: how many global ports a group has.
        router_ports: how many global ports a router has.
    """
    count = groups(parameters, ports)
    if ports % (count - 1) == 0 and count > router_ports:
        return []
    fit = [n + 1 for n in range(router_ports, ports + 1) if ports % n == 0]
    near = sorted(fit, key=lambda n: abs(n - count))[:3]
    return [
        Problem(
            key="groups",
            required=f"above h = {router_ports}, with groups - 1 dividing a group's {ports} "
            "global ports",
            given=str(count),
            todo=f"the nearest are {', '.join(map(str, sorted(near)))}",
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
