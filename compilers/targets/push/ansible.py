"""The ansible target: an inventory and a playbook that push the files of another target.

Another target has rendered the files. A *system* is a network operating system, and has the name of
the target that renders its files. A play of the playbook loads the files of one system on the nodes
with this system. docs/targets/routers.md describes the use of both files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compilers.readers.routers.tool_check import check_ansible
from compilers.tables.build import Build
from compilers.targets.options import Chosen
from compilers.targets.push.pushed_files import (
    PushedNode,
    PushTarget,
    node_list,
    push_options,
)
from compilers.targets.target_lookup import default_first, target

CONNECTIONS = {system.name: system.ansible for system in default_first() if system.ansible}
"""How Ansible reaches each system that it can reach, by name."""


@dataclass(frozen=True, slots=True)
class AnsiblePlay:
    """The nodes of a system, and how their files are loaded."""

    group: str
    """The name of the group of these nodes."""
    system: str
    """The system, by the name of the target whose files are pushed."""
    nodes: list[PushedNode]
    """The nodes of the system."""
    files: tuple[str, ...]
    """The names of the files of every node."""
    connection: str
    """The name of the connection plug-in, such as `ssh`."""
    network_os: str
    """The name of the system in the plug-in; "" for a shell."""
    root: bool
    """Whether tasks run as root, with files below `polarfab_etc`."""
    elsewhere: tuple[str, ...]
    """The names of files that do not go into the folder `polarfab_etc`."""


@dataclass(frozen=True, slots=True)
class AnsibleVariables:
    """The variables of the templates."""

    name: str
    """The name of the fabric."""
    identity: str
    """The identity of the build."""
    plays: list[AnsiblePlay]
    """The plays, one for each system."""


class Ansible(PushTarget):
    """An Ansible inventory, and a playbook that pushes another target's files."""

    name = "ansible"
    summary = "an Ansible inventory, and a playbook that pushes another target's files"
    files = dict.fromkeys(("inventory.yaml", "push.yaml"), AnsibleVariables)
    fabric_check = staticmethod(check_ansible)
    options = push_options(*CONNECTIONS)
    systems = CONNECTIONS

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], AnsibleVariables]:
        """See `Target.variables`."""
        nodes = node_list(build, chosen)
        systems = sorted({node.system for node in nodes})
        plays = []
        for system in systems:
            connection = CONNECTIONS[system]
            plays.append(
                AnsiblePlay(
                    group=f"fabric_{system}" if len(systems) > 1 else "fabric",
                    system=system,
                    nodes=[node for node in nodes if node.system == system],
                    files=tuple(target(system).files),
                    connection=connection.connection,
                    network_os=connection.network_os,
                    root=connection.root,
                    elsewhere=connection.elsewhere,
                )
            )
        values = AnsibleVariables(build.name, build.identity, plays)
        return lambda _: values  # the same at every vertex, as the files are for the whole fabric
