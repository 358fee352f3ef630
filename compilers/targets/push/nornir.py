"""The nornir target: an inventory for SimpleInventory that names another target's files
(docs/targets/automation.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compilers.readers.routers.tool_check import check_nornir
from compilers.tables.build import Build
from compilers.targets.options import Chosen
from compilers.targets.push.pushed_files import SYSTEM, PushTarget, PushVariables, push_options
from compilers.targets.target import FabricCheck

NORNIR_PLATFORMS = {
    "frr": "linux",
    "linux": "linux",
    "sonic": "linux",
    "eos": "eos",
    "nxos": "nxos_ssh",
    "junos": "junos",
    "srlinux": "srl",
    "nvue": "linux",
}
"""The platform of a system in the words of NAPALM and its community drivers."""


@dataclass(frozen=True, slots=True)
class NornirVariables(PushVariables):
    """The variables of the templates (docs/targets/automation.md lists them)."""

    platform: str


class Nornir(PushTarget):
    """A Nornir inventory that names another target's files."""

    name = "nornir"
    summary = "a Nornir inventory that names another target's files"
    files = dict.fromkeys(
        ("config.yaml", "hosts.yaml", "groups.yaml", "defaults.yaml"), NornirVariables
    )
    options = push_options(*NORNIR_PLATFORMS)

    def fabric_check(self) -> FabricCheck:
        """See `Target.fabric_check`."""
        return check_nornir

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], NornirVariables]:
        """See `Target.variables`."""
        values = NornirVariables(
            **self.shared(build, chosen),
            platform=NORNIR_PLATFORMS[chosen[SYSTEM]],
        )
        return lambda _: values
