"""Assignment of a node's ports to its links and hosts.

By default links are spread evenly over all modules of a node, so that the failure of one module
costs as little as possible (`compilers.wiring.module_spread`); within a module they are ordered by
the rack at their other end. With `modules: filled` in the inventory, links to one rack leave from
as few modules as possible: groups of links, the largest first, go whole into the first module with
room. Without modules links take the ports in that order. Ports that are fixed by hand (*pins*) are
kept, and other links take the ports that are left.

A link or a host whose port is disabled moves to a spare port, in the order in which the inventory
lists disabled ports, and all others stay. So a port that breaks later moves one cable only.

`compilers.wiring.port_plan` calls these functions. Two links of a switch are in a *triangle* if the
switches at their far ends are neighbours; each of these two links leads to the *apex* of the other.
In shapes, S is the number of switches, K the most links of a switch, and P the most hosts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.topology.triangles import apex_links
from compilers.wiring.module_spread import (
    links_per_module,
    modules_in_rotation,
    modules_in_runs,
    separate_triangles,
    separating_order,
)
from compilers.wiring.port_groups import PortGroups, alike_rows
from compilers.wiring.type_ports import SwitchPorts

Pins = Mapping[int, Mapping[int, int]]
"""Fixed ports, by switch and by the number of its link or host."""


class FixedPorts(NamedTuple):
    """The ports that are fixed: by hand, or as links and hosts have them already."""

    links: Pins
    """The ports of links."""
    hosts: Pins
    """The ports of hosts."""


@dataclass(frozen=True, slots=True, eq=False)
class PortDemand:
    """What takes ports: K links of each of S switches, and hosts."""

    far: NDArray[np.int32]
    """int32[S, K]: the vertex at the other end of each link, -1 beyond the last."""
    switches: SwitchPorts
    """The ports of each switch."""
    groups: PortGroups
    """The order in which links take ports."""
    pins: Pins
    """The ports of links that are fixed."""
    hosts: NDArray[np.int64]
    """int64[S]: how many hosts each switch has."""
    left_to_hosts: Mapping[int, Collection[int]]
    """The ports that links leave to hosts, by switch."""

    @property
    def switches_with_fixed_ports(self) -> list[int]:
        """The switches with pins, or with ports that are kept for hosts."""
        return list({**self.pins, **self.left_to_hosts})


def ports_of_links(demand: PortDemand) -> NDArray[np.int32]:
    """Return the port of each link, int32[S, K], 0 beyond the last and where ports have run out.

    1. All links are packed into ports, group by group.
    2. Where links can be spread over modules, their ports are assigned anew.
    3. Switches with fixed ports that are not spread are packed anew around these.
    """
    far, groups = demand.far, demand.groups
    port = np.zeros(far.shape, np.int32)
    # Switches of one type with groups of the same sizes get their ports in one step.
    node_type = demand.switches.node_type[:, None].astype(np.int32)
    type_and_sizes = np.concatenate((node_type, groups.sizes), axis=1)
    for (t, *sizes), switches in alike_rows(type_and_sizes):
        ports = demand.switches.types[t].ports_for_groups(
            [size for size in sizes if size], groups.is_one_module
        )
        port[switches[:, None], groups.order[switches, : len(ports)]] = np.array(ports, np.int32)
    is_spread = np.zeros(len(far), np.bool_)
    if groups.spread_number is not None:
        is_spread = _spread_over_modules(
            port, demand, separating_order(apex_links(far), far >= 0, groups.spread_number)
        )
    for switch in demand.switches_with_fixed_ports:
        if not is_spread[switch]:
            port[switch] = _packed_around_pins(demand, switch)
    return port


def _packed_around_pins(demand: PortDemand, switch: int) -> NDArray[np.int32]:
    """Return the ports of a switch's links, int32[K], group by group around fixed ports."""
    pinned, host_ports = demand.pins.get(switch, {}), demand.left_to_hosts.get(switch, ())
    groups = demand.groups
    links = [
        link
        for link in groups.order[switch].tolist()
        if demand.far[switch, link] >= 0 and link not in pinned
    ]
    not_free = (*pinned.values(), *host_ports)
    sizes = groups.sizes_without(switch, pinned)
    ports = demand.switches.of_switch(switch).ports_for_groups(
        sizes, groups.is_one_module, not_free
    )
    port = np.zeros(demand.far.shape[1], np.int32)
    port[links[: len(ports)]] = ports
    port[list(pinned)] = list(pinned.values())
    return port


def _spread_over_modules(
    port: NDArray[np.int32], demand: PortDemand, separating_links: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Assign new ports at switches whose links can be spread over several modules.

    Args:
        port: int32[S, K], the ports of links, which are changed.
        demand: the links.
        separating_links: int64[S, K], the links in `module_spread.separating_order`.

    Returns:
        The switches whose links are spread, bool[S].
    """
    far, switches = demand.far, demand.switches
    apex = apex_links(far)
    in_triangles = (apex >= 0).any(axis=1)
    degree = np.count_nonzero(far >= 0, axis=1)
    # int64[S, K], the place of each link in `groups.order`: its order within a module.
    rank = np.argsort(demand.groups.order, axis=1)
    # In a graph without triangles, links are taken rack by rack, so that links to one rack get
    # different modules.
    spreading_order = separating_links if in_triangles.any() else demand.groups.order
    is_spread = np.zeros(len(far), np.bool_)
    # Switches of one type with as many links and hosts get their ports in one step.
    features = np.column_stack((switches.node_type, degree, demand.hosts, in_triangles))
    for (t, links, hosts, has_triangles), alike in alike_rows(features.astype(np.int64)):
        ports_of_modules = list(switches.types[t].ports_by_module(links, hosts).values())
        if not ports_of_modules:
            continue
        is_spread[alike] = True
        capacities = [len(ports) for ports in ports_of_modules]
        counts = links_per_module(capacities, links, fixed_links=[0] * len(capacities))
        module_in_order = modules_in_runs(counts) if has_triangles else modules_in_rotation(counts)
        module = _modules_of_links(spreading_order[alike, :links], module_in_order, apex[alike])
        # Links module by module, and the ports in the same order: the first ones of each module.
        by_module = np.lexsort((rank[alike], module), axis=1)[:, :links]
        used_ports = [
            used
            for ports, count in zip(ports_of_modules, counts, strict=True)
            for used in ports[:count]
        ]
        port[alike[:, None], by_module] = np.array(used_ports, np.int32)
    # A switch with ports that are fixed, or kept for hosts, gets its ports by itself.
    for switch in demand.switches_with_fixed_ports:
        if is_spread[switch]:
            links_in_order = separating_links[switch, : degree[switch]].tolist()
            ports_of_switch = _spread_around_pins(
                demand, switch, links_in_order, apex[switch], rank[switch]
            )
            is_spread[switch] = ports_of_switch is not None
            if ports_of_switch is not None:
                port[switch] = ports_of_switch
    return is_spread


def _modules_of_links(
    order: NDArray[np.int64], module_in_order: Sequence[int], apex: NDArray[np.int16]
) -> NDArray[np.int64]:
    """Return the module of each link of n switches alike, int64[n, K].

    Beyond the last link there is the number behind that of the last module.

    Args:
        order: int64[n, links], the links of each switch in the order in which they are spread.
        module_in_order: the module of each place of that order, the same for all switches.
        apex: int16[n, K], the link to the apex of each link's triangle.
    """
    module = np.full(apex.shape, max(module_in_order, default=0) + 1)
    np.put_along_axis(module, order, np.array(module_in_order, np.int64)[None], axis=1)
    for row in _switches_with_triangle_on_one_module(module, apex).tolist():
        module[row] = separate_triangles(module[row].tolist(), apex[row].tolist(), set())
    return module


def _spread_around_pins(
    demand: PortDemand,
    switch: int,
    links: Sequence[int],
    apex: NDArray[np.int16],
    rank: NDArray[np.int64],
) -> NDArray[np.int32] | None:
    """Return the ports of a switch's links, int32[K]; None where too few are left for a spread.

    Args:
        demand: the links.
        switch: the switch, which has pins or ports that are kept for hosts.
        links: its links in `module_spread.separating_order`.
        apex: int16[K], the link to the apex of each link's triangle.
        rank: int64[K], the order of links within a module.
    """
    pinned, host_ports = demand.pins.get(switch, {}), demand.left_to_hosts.get(switch, ())
    ports_by_module = demand.switches.of_switch(switch).ports_by_module(
        len(links), int(demand.hosts[switch])
    )
    ports = {
        module: [number for number in numbers if number not in host_ports]
        for module, numbers in ports_by_module.items()
    }
    free_links = [link for link in links if link not in pinned]
    fixed = {*pinned.values()}
    room = sum(number not in fixed for numbers in ports.values() for number in numbers)
    if room < len(free_links):
        return None
    return _ports_around_pins(ports, free_links, pinned, apex, rank)


def _switches_with_triangle_on_one_module(
    module: NDArray[np.int64], apex: NDArray[np.int16]
) -> NDArray[np.int64]:
    """Return the switches, int64[m], with both links of a triangle on one module.

    Args:
        module: int64[n, K], the module of each link.
        apex: int16[n, K], the link to the apex of each link's triangle.
    """
    module_of_apex = np.take_along_axis(module, np.maximum(apex, 0).astype(np.intp), axis=1)
    return np.flatnonzero(((apex >= 0) & (module_of_apex == module)).any(axis=1))


def _ports_around_pins(
    ports: Mapping[int, Sequence[int]],
    links: Sequence[int],
    pinned: Mapping[int, int],
    apex: NDArray[np.int16],
    rank: NDArray[np.int64],
) -> NDArray[np.int32]:
    """Return the ports of a switch's links, int32[K], some of which are fixed.

    Args:
        ports: the ports for links by module.
        links: the links whose ports are not fixed, in `module_spread.separating_order`.
        pinned: the fixed ports by link.
        apex: int16[K], the link to the apex of each link's triangle.
        rank: int64[K], the order of links within a module.
    """
    fixed = {*pinned.values()}
    free = [[port for port in numbers if port not in fixed] for numbers in ports.values()]
    module_of_port = {port: m for m, numbers in enumerate(ports.values()) for port in numbers}
    # How many links each module gets besides its fixed ones.
    fixed_count = [sum(module_of_port.get(port) == m for port in fixed) for m in range(len(free))]
    counts = links_per_module([len(numbers) for numbers in free], len(links), fixed_count)
    # The module of each link. A fixed port may be on none of these modules. Such a link gets a
    # negative number of its own, so that it shares a module with no other link.
    module = [-1 - link for link in range(len(apex))]
    for link, m in zip(links, modules_in_runs(counts), strict=True):
        module[link] = m
    for link, port in pinned.items():
        module[link] = module_of_port.get(port, module[link])
    immovable = set(range(len(apex))) - set(links)
    module = separate_triangles(module, apex.tolist(), immovable)
    # The ports: in each module the free ones, by the links' order within a module.
    port_of_link = np.zeros(len(apex), np.int32)
    for m, numbers in enumerate(free):
        on_module = [link for link in links if module[link] == m]
        on_module.sort(key=rank.__getitem__)
        port_of_link[on_module] = numbers[: len(on_module)]
    port_of_link[list(pinned)] = list(pinned.values())
    return port_of_link


def move_to_spare_ports(
    port: NDArray[np.int32],
    host_port: NDArray[np.int32],
    switches: SwitchPorts,
    pins: Pins,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Move links and hosts from disabled ports to spare ones, as far as there are any.

    Args:
        port: int32[S, K], the port of each link.
        host_port: int32[S, P], the port of each host.
        switches: the ports of each switch.
        pins: the ports of links that are fixed, which stay. No host is fixed at a disabled port:
            `pins_of_hosts` refuses that.

    Returns:
        The ports of links and of hosts, shaped as before.
    """
    if not switches.disabled:
        return port, host_port
    links, hosts = port.copy(), host_port.copy()
    for switch, broken in switches.disabled.items():
        type_ports = switches.of_switch(switch)
        pinned = pins.get(switch, {})
        for number in broken:
            link = _index_of(number, links[switch])
            if link is not None and link not in pinned:
                used = {*links[switch].tolist(), *hosts[switch].tolist(), *broken}
                links[switch, link] = type_ports.replacement(number, used) or number
        for number in broken:
            host = _index_of(number, hosts[switch])
            if host is not None:
                used = {*links[switch].tolist(), *hosts[switch].tolist(), *broken}
                hosts[switch, host] = type_ports.replacement(number, used, is_host=True) or number
    return links, hosts


def _index_of(port: int, ports: NDArray[np.int32]) -> int | None:
    """Return the first index of a port in a row of ports; None if the row does not have it."""
    indexes = np.flatnonzero(ports == port)
    return int(indexes[0]) if len(indexes) else None
