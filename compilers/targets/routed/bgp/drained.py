"""Drains a switch of an eBGP fabric before maintenance: the lines to type, and those that end it.

A drained switch announces the prefixes of other switches with a longer AS path: so long that any
other path is preferred, and short enough that neighbours without another path still accept it. It
announces its own prefix as before. It withdraws the address that it announces as a next hop, so
that no static route shares packets over it. It forwards packets all the time. `polarfab drain`
prints these lines. They are route maps, prefix lists and networks in the words of Cisco's IOS, and
of systems with a similar configuration language.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from compilers.readers.emitted_report import EXAMPLES
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.targets.devices.tool_settings import RouteMapWords
from compilers.targets.node_systems import builds_for, system_target
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.bgp_options import ROUTING
from compilers.targets.routed.bgp.speaker_variables import BgpFamily, BgpSpeaker
from compilers.targets.target import Target
from compilers.targets.target_lookup import installed_systems, target
from inventory.problems import InputError, did_you_mean


@runtime_checkable
class Speaking(Protocol):
    """The variables of a router's templates, on a system that can speak BGP."""

    @property
    def bgp(self) -> BgpSpeaker | None:
        """The speaker; None with static routes."""


def drained_systems() -> list[str]:
    """The systems for which the lines of a drain are known."""
    return [system.name for system in installed_systems() if system.route_maps]


def maintenance_lines(
    build: Build, target_name: str, options: Chosen, node: str, *, end: bool = False
) -> list[str]:
    """The lines to type on a switch to drain it.

    Args:
        build: the build of the fabric.
        target_name: the name of the target; "": the system of the switch.
        options: the options of the target with which the switch was rendered.
        node: the name of the switch.
        end: whether the lines end a drain, instead of beginning one.

    Raises:
        InputError: the system has no route maps, routes are static, or there is no such switch.
    """
    names = build.wiring.names  # one for each vertex
    if node not in names:
        examples = ", ".join(names[:EXAMPLES])
        todo = did_you_mean(node, names, "links and groups of routers cannot be drained")
        raise InputError.of(f"a switch, such as {examples}", node, todo, key="NODE")
    (build,) = builds_for([build], target_name)
    system = _system(build, target_name, names.index(node))
    syntax = system.route_maps
    if syntax is None:
        todo = "switch the policy of its BGP by hand, or shut its ports one by one"
        given = system.name
        raise InputError.of(f"one of {', '.join(drained_systems())}", given, todo, key="target")
    system_build, chosen = system.check(build, options)
    if chosen.get(ROUTING) != "bgp":
        todo = "static routes go around a switch when its ports are down"
        raise InputError.of("ebgp", "static", todo, key=CONTROL_KEYS[ROUTING])
    values = system.variables(system_build, chosen)(names.index(node))
    speaker = values.bgp if isinstance(values, Speaking) else None
    if speaker is None:
        raise InputError.of("a system that speaks BGP", system.name, key="target")
    # So a path as long as the diameter becomes the longest that neighbours accept.
    prepend_count = speaker.longest - build.topology.diameter
    as_path = " ".join([str(speaker.number)] * prepend_count)
    lines: list[str] = []
    networks: list[str] = []
    for family in speaker.families:
        lines += _end_policy(family, syntax) if end else _begin_policy(family, syntax, as_path)
        if family.via:
            networks += _network(family, syntax, end)
    if networks:
        lines += [f"router bgp {speaker.number}", *networks, "exit"]
    return lines


def _system(build: Build, target_name: str, vertex: int) -> Target:
    """The target with a name; "": the system of the switch at a vertex."""
    if target_name:
        return target(target_name)
    return system_target(build).by_vertex(len(build.wiring.names))[vertex]


def _begin_policy(family: BgpFamily, syntax: RouteMapWords, as_path: str) -> Iterator[str]:
    """Lines that announce the switch's own prefix as before, others with a longer path.

    These are the entries 5 and 10 of the route map for announcements.

    Args:
        family: the BGP of the switch in an address family.
        syntax: how the system writes route maps.
        as_path: the AS numbers that are put before the path of other prefixes.
    """
    route_map = f"route-map announced-{family.name} permit"
    if family.own:
        prefix_list = f"{family.word} prefix-list own-{family.name}"
        entry = f"seq 5 permit {family.own}"
        if syntax.list_sections:
            yield from (prefix_list, f" {entry}", "exit")
        else:
            yield f"{prefix_list} {entry}"
        match = f" match {family.word} address prefix-list own-{family.name}"
        yield from (f"{route_map} 5", match, "exit")
    yield from (f"{route_map} 10", f" set as-path prepend {as_path}", "exit")


def _end_policy(family: BgpFamily, syntax: RouteMapWords) -> Iterator[str]:
    """Lines that undo those of `_begin_policy`."""
    route_map = f"route-map announced-{family.name} permit"
    yield from (f"{route_map} 10", " no set as-path prepend", "exit")
    if family.own:
        prefix_list = f"{family.word} prefix-list own-{family.name}"
        entry = f"seq 5 permit {family.own}"
        listed = prefix_list if syntax.list_sections else f"{prefix_list} {entry}"
        yield from (f"no {route_map} 5", f"no {listed}")


def _network(family: BgpFamily, syntax: RouteMapWords, end: bool) -> Iterator[str]:
    """Lines that withdraw the address announced as a next hop, or announce it again at the end."""
    network = f"network {family.via}"
    yield f" address-family {family.name}{syntax.family_suffix}"
    yield f"  {network if end else f'no {network}'}"
    yield " exit"
