"""The ansible target: an inventory and a playbook that push the files of another target.

docs/targets/routers.md describes their use.
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
"""How Ansible talks to each system."""


@dataclass(frozen=True, slots=True)
class AnsiblePlay:
    """The nodes of a system, and how their files are loaded."""

    group: str
    """The name of the group of these nodes."""
    system: str
    """The target whose files are pushed."""
    nodes: list[PushedNode]
    """The nodes of the system."""
    files: tuple[str, ...]
    """The names of the files of every node."""
    connection: str
    """As in `AnsibleConnection`, like the next three."""
    network_os: str
    """As in `AnsibleConnection`."""
    root: bool
    """As in `AnsibleConnection`."""
    elsewhere: tuple[str, ...]
    """As in `AnsibleConnection`."""


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
    handled = CONNECTIONS

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], AnsibleVariables]:
        """See `Target.variables`."""
        nodes = node_list(build, chosen)
        systems = sorted({node.system for node in nodes})
        plays = []
        for system in systems:
            reached = CONNECTIONS[system]
            plays.append(
                AnsiblePlay(
                    group=f"fabric_{system}" if len(systems) > 1 else "fabric",
                    system=system,
                    nodes=[node for node in nodes if node.system == system],
                    files=tuple(target(system).files),
                    connection=reached.connection,
                    network_os=reached.network_os,
                    root=reached.root,
                    elsewhere=reached.elsewhere,
                )
            )
        values = AnsibleVariables(build.name, build.identity, plays)
        return lambda _: values
