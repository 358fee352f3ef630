"""The ansible target: an inventory and a playbook that push another target's files
(docs/automation.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from compilers.tables.build import Build
from compilers.targets.options import Chosen, choose
from compilers.targets.push import pushed_files
from compilers.targets.rendering import Renderer, Written, require_all
from compilers.targets.template_check import known

FILES = ("inventory.yaml", "push.yaml")
VARIABLES = known(FILES, "name identity system connection network_os nodes files")
CONNECTIONS = {
    "frr": ("ssh", ""),
    "linux": ("ssh", ""),
    "sonic": ("ssh", ""),
    "eos": ("ansible.netcommon.network_cli", "arista.eos.eos"),
    "nxos": ("ansible.netcommon.network_cli", "cisco.nxos.nxos"),
    "junos": ("ansible.netcommon.netconf", "junipernetworks.junos.junos"),
    "srlinux": ("ssh", ""),
}
"""How Ansible talks to a system: its connection and network_os."""
OPTIONS = pushed_files.options(*CONNECTIONS)


def render(
    build: Build,
    out: Path,
    templates: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    options: Chosen | None = None,
    only: Collection[int] | None = None,
) -> Written:
    """Write OUT/inventory.yaml and OUT/push.yaml; see `compilers.targets.Target.render`."""
    require_all("ansible", only)
    chosen = choose("ansible", OPTIONS, options)
    renderer = Renderer("ansible", templates, VARIABLES)
    connection, network_os = CONNECTIONS[chosen[pushed_files.SYSTEM]]
    how = {"connection": connection, "network_os": network_os}
    return pushed_files.write_all(
        renderer, out, FILES, pushed_files.variables(build, chosen) | how, progress
    )
