"""Global links between the groups of a Dragonfly or a Megafly.

Every group has the same number of global ports. Port t of group i is cabled to port P-1-t of
group i + (t mod (g-1)) + 1 (mod g), with P ports and g groups: the relative arrangement of
Hastings et al., "Comparing global link arrangements for Dragonfly networks" (CLUSTER 2015), which
looks the same from every group. With h ports per router, consecutive, a link that leaves by router
j of A arrives at router a-1-j, and no link is doubled as long as h < g.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology.labelled_graph import Parameters
from inventory.problems import Problem


def groups(parameters: Parameters, ports: int) -> int:
    """The parameter `groups`; by default the largest number, one link between any two groups."""
    return int(parameters.get("groups", ports + 1))


def global_links(count: int, ports: int) -> NDArray[np.int64]:
    """int64[count·ports / 2, 2, 2]: both ends of each link as (group, port)."""
    group, port = np.divmod(np.arange(count * ports), ports)
    far = (group + port % (count - 1) + 1) % count
    ends = np.stack((group, port, far, ports - 1 - port), axis=1).reshape(-1, 2, 2)
    once = group * ports + port < far * ports + ends[:, 1, 1]
    links: NDArray[np.int64] = ends[once]
    return links


def check_groups(parameters: Parameters, ports: int, router_ports: int) -> list[Problem]:
    """Problems unless all groups are joined by equally many links, and no routers by two.

    Args:
        parameters: with or without `groups`.
        ports: global ports of a group.
        router_ports: global ports of a router.
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
    """int64[size(size-1) / 2, 2], the edges of the complete graph."""
    return np.stack(np.triu_indices(size, 1), axis=1)


def copies(edges: NDArray[np.int64], count: int, step: int) -> NDArray[np.int64]:
    """`edges` once for each of `count` groups of `step` vertices."""
    return (np.arange(count)[:, None, None] * step + edges).reshape(-1, 2)
