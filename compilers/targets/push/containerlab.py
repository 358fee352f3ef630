"""The containerlab target: a lab of the fabric and its hosts, with the files of another target.

The lab is a topology file: a container for each switch and host, and their links. Switches load the
files that another target has rendered. docs/targets/routers.md describes its use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from types import MappingProxyType
from typing import Any

import numpy as np

from compilers.readers.routers.tool_check import check_containerlab
from compilers.tables.build import Build
from compilers.targets.devices.tool_settings import ContainerKind
from compilers.targets.options import SET, Chosen, Option
from compilers.targets.push.pushed_files import (
    PushedNode,
    PushTarget,
    node_list,
    push_options,
    system_of_each,
)
from compilers.targets.routed.router_problems import HOST_NAME
from compilers.targets.routed.static_routes import BuildRouters
from compilers.targets.system_port_names import named_by_systems
from compilers.targets.target_lookup import default_first
from inventory.problems import InputError, Problem, few

MANAGEMENT = IPv4Network("172.28.0.0/16")
"""The network of the containers' first interfaces; containerlab's own has room for 253."""
IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:@-]{0,254}")
"""`alpine:3`: the name of an image."""
CONTAINER_KINDS = {system.name: system.container for system in default_first() if system.container}
"""How containerlab runs each system that it can run, by name."""
INTERFACES = {system.name: system.interfaces for system in default_first() if system.interfaces}
"""How each system names its ports, by name of the system."""


def _image_option(description: str) -> Option:
    """An option with the name of a container image, "" by default."""
    return Option(
        description,
        default="",
        possible="the name of an image, or nothing",
        is_possible=lambda text: not text or IMAGE.fullmatch(text) is not None,
    )


@dataclass(frozen=True, slots=True)
class LabKind:
    """How the switches of a system are run."""

    kind: ContainerKind
    """What containerlab knows of the system."""
    image: str
    """The image of the switches."""


@dataclass(frozen=True, slots=True)
class ContainerlabVariables:
    """The variables of the templates."""

    name: str
    """The name of the fabric."""
    identity: str
    """The identity of the build."""
    management: str
    """The network of the containers' first interfaces."""
    kinds: dict[str, LabKind]
    """How the switches of each system are run."""
    host_image: str
    """The image of hosts."""
    nodes: list[PushedNode]
    """The switches."""
    hosts: list[dict[str, Any]]
    """The `name` of each host, and the `commands` that configure it."""
    links: list[tuple[str, str]]
    """Both ends of each link, NODE:INTERFACE."""


class Containerlab(PushTarget):
    """The fabric and its hosts as containers."""

    name = "containerlab"
    summary = "the fabric and its hosts as a lab that binds another target's files"
    files = dict.fromkeys(("topology.clab.yml", "daemons"), ContainerlabVariables)
    fabric_check = staticmethod(check_containerlab)
    systems = CONTAINER_KINDS
    options = MappingProxyType(
        {
            **push_options(*CONTAINER_KINDS),
            "image": _image_option("The image of switches; the system's usual one if empty."),
            "host_image": replace(_image_option("The image of hosts."), default="alpine:3"),
        }
    )

    def with_port_names(self, build: Build, chosen: Chosen) -> Build:
        """See `Target.with_port_names`: as the systems in the containers name them."""
        systems = system_of_each(build, chosen)
        named = named_by_systems(replace(build, systems=tuple(systems)))
        return replace(named, systems=build.systems)

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`."""
        if chosen["image"] and len({*build.systems}) > 1:
            required = "no image where switches have several systems: each has its usual one"
            raise InputError.of(required, chosen["image"], key=f"{SET} image")
        ends = {end for link in lab_links(build, chosen) for end in link}
        problems = [
            Problem(
                key="hosts",
                required="a name of at most 63 letters, digits and . _ -, that no node has",
                given=repr(name),
                todo="it becomes the name of a container",
            )
            for name in build.wiring.host_names
            if not HOST_NAME.fullmatch(name) or name in build.wiring.names
        ]
        if any(end.endswith(":eth0") for end in ends):
            problems.append(
                Problem(
                    key="node_types",
                    required="ports that containerlab leaves to the fabric: eth0 is its own",
                    given="eth0",
                    todo="name the ports from eth1 on",
                )
            )
        if build.addressing.ipv4.overlaps(MANAGEMENT):
            problems.append(
                Problem(
                    key="addressing.ipv4",
                    required=f"a pool outside {MANAGEMENT}, containerlab's management network here",
                    given=str(build.addressing.ipv4),
                )
            )
        if problems:
            raise InputError(few(problems))

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], ContainerlabVariables]:
        """See `Target.variables`."""
        systems = sorted({*system_of_each(build, chosen)})
        values = ContainerlabVariables(
            name=build.name,
            identity=build.identity,
            management=str(MANAGEMENT),
            kinds={name: _lab_kind(name, chosen["image"]) for name in systems},
            host_image=chosen["host_image"],
            nodes=node_list(build, chosen),
            # Hosts need addresses only, which do not depend on the names of a system's ports.
            hosts=list(lab_hosts(BuildRouters.of(build, INTERFACES[systems[0]]))),
            links=list(lab_links(build, chosen)),
        )
        return lambda _: values  # the same at every vertex, as the files are for the whole fabric


def _lab_kind(system: str, image: str) -> LabKind:
    """How the switches of a system are run; by the system's usual image if `image` is ""."""
    kind = CONTAINER_KINDS[system]
    return LabKind(kind, image or kind.image)


def lab_links(build: Build, chosen: Chosen) -> Iterator[tuple[str, str]]:
    """Both ends of every link, NODE:INTERFACE: first those of switches, then those of hosts."""
    wiring, systems = build.wiring, system_of_each(build, chosen)

    def end(vertex: int, port: int) -> str:
        """The end of a link at a port of a switch."""
        interfaces = INTERFACES[systems[vertex]]
        interface = interfaces.lab_interface(wiring.port_name(vertex, port), port)
        return f"{wiring.names[vertex]}:{interface}"

    for vertex, link in np.argwhere(wiring.far >= 0).tolist():
        far = int(wiring.far[vertex, link])
        if vertex < far:
            near_end = end(vertex, int(wiring.port[vertex, link]))
            yield near_end, end(far, int(wiring.far_port[vertex, link]))
    # `host_names` has names for this many hosts at every switch.
    most_hosts = wiring.host_port.shape[1]
    for vertex, host in np.argwhere(wiring.host_port > 0).tolist():
        host_name = wiring.host_names[vertex * most_hosts + host]
        yield end(vertex, int(wiring.host_port[vertex, host])), f"{host_name}:eth1"


def lab_hosts(routers: BuildRouters) -> Iterator[dict[str, Any]]:
    """Every host: its name, and commands that give it addresses and routes to the fabric."""
    wiring, addressing, pools = routers.build.wiring, routers.build.addressing, routers.pools()
    most_hosts = wiring.host_port.shape[1]
    for vertex, host in np.argwhere(wiring.host_port > 0).tolist():
        commands = [
            f"ip address add {addressing.host(vertex, host)}/{addressing.ipv4_length} dev eth1",
            f"ip route add {pools[0]} via {addressing.gateway(vertex)} dev eth1",
        ]
        if addressing.ipv6:
            network = addressing.network6(vertex)
            commands += [
                f"ip -6 address add {addressing.host6(vertex, host)}/64 dev eth1",
                f"ip -6 route add {pools[1]} via {network[1]} dev eth1",
            ]
        yield {"name": wiring.host_names[vertex * most_hosts + host], "commands": commands}
