"""How tools reach the devices of a system, and what they write."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnsibleConnection:
    """How Ansible talks to a system, whose tasks are in `push/tasks.j2` of its templates."""

    connection: str
    """The plug-in."""
    network_os: str = ""
    """What the plug-in calls the system; "" for a shell."""
    root: bool = False
    """Whether tasks are done as root, with files below `polarfab_etc`."""
    elsewhere: tuple[str, ...] = ()
    """Files that the tasks of a Linux machine leave to those of the system."""


@dataclass(frozen=True, slots=True)
class ContainerKind:
    """How containerlab runs a system."""

    kind: str
    """What containerlab calls it."""
    image: str
    """The usual image."""
    startup: str = ""
    """The rendered file that it starts with."""
    binds: tuple[tuple[str, str], ...] = ()
    """The other rendered files, and where they are put."""
    commands: tuple[str, ...] = ()
    """What then loads them."""
    daemons: str = ""
    """Where the list of FRR's daemons is put; "" where nothing reads it."""


@dataclass(frozen=True, slots=True)
class RouteMapWords:
    """How a system writes route maps: what differs among those with Cisco's words."""

    family: str = " unicast"
    """The words behind `address-family ipv4`."""
    list_sections: bool = False
    """Whether a prefix list is a section, with an entry a line."""
