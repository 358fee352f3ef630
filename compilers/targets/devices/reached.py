"""How Ansible, containerlab and `drain` treat the devices of a system: a value for each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnsibleConnection:
    """How Ansible reaches a system; its tasks are in `templates/SYSTEM/push/tasks.j2`."""

    connection: str
    """The connection plug-in."""
    network_os: str = ""
    """The name of the system in the plug-in; "" for a shell."""
    root: bool = False
    """Whether tasks run as root, with files below `polarfab_etc`."""
    elsewhere: tuple[str, ...] = ()
    """Files that do not go where the other files of a Linux machine go; the system's own tasks put
    them in their place."""


@dataclass(frozen=True, slots=True)
class ContainerKind:
    """How containerlab runs a system."""

    kind: str
    """Its name in containerlab."""
    image: str
    """The usual image."""
    startup: str = ""
    """The rendered file that it starts with."""
    binds: tuple[tuple[str, str], ...] = ()
    """The other rendered files, each with its path in the container."""
    commands: tuple[str, ...] = ()
    """The commands that load them."""
    daemons: str = ""
    """The path of the list of FRR's daemons in the container; "" for none."""


@dataclass(frozen=True, slots=True)
class RouteMapWords:
    """How a system with Cisco-like route maps differs from others with such."""

    family: str = " unicast"
    """The words behind `address-family ipv4`."""
    list_sections: bool = False
    """Whether a prefix list is a section with a line for each entry."""
