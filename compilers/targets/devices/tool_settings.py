"""How tools handle a system: Ansible, containerlab, and `polarfab drain`.

A target has a value of each class here as an attribute (`Target.ansible`, `Target.container`,
`Target.route_maps`), if the tool can handle its system.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnsibleConnection:
    """How Ansible reaches a system, whose tasks are in `templates/SYSTEM/push/tasks.j2`."""

    connection: str
    """The name of the connection plug-in, such as `ssh`."""
    network_os: str = ""
    """The name of the system in the plug-in; "" for a shell."""
    root: bool = False
    """Whether tasks run as root. Then they write files below the folder `polarfab_etc`."""
    elsewhere: tuple[str, ...] = ()
    """The names of files that do not go into the folder `polarfab_etc`; the tasks of the system put
    them elsewhere."""


@dataclass(frozen=True, slots=True)
class ContainerKind:
    """How containerlab runs a system."""

    kind: str
    """The name of the system in containerlab."""
    image: str
    """The container image unless the user names another."""
    startup: str = ""
    """The rendered file that is its startup configuration; "" for none."""
    binds: tuple[tuple[str, str], ...] = ()
    """The other rendered files, each with its path in the container."""
    commands: tuple[str, ...] = ()
    """The commands in the container that load these files."""
    daemons: str = ""
    """The path in the container of the file that says which daemons of FRR start; "" for none."""


@dataclass(frozen=True, slots=True)
class RouteMapWords:
    """How a system writes route maps, among those whose language follows Cisco's IOS."""

    family_suffix: str = " unicast"
    """What follows `address-family ipv4`: ` unicast`, or nothing."""
    list_sections: bool = False
    """Whether a prefix list is a section of its own, with a line for each entry."""
