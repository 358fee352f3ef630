"""The build whose cables stay: what the user names, or what `installed: true` means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from polarfab.output.verb_output import say

if TYPE_CHECKING:
    from polarfab.fabric import Fabric


def earlier_build(fabric: Fabric, named: Path | None, output: Path) -> Fabric | None:
    """The earlier build: the one that is named, or that of the fabric in `output` if installed."""
    from compilers.tables.folders.generations import fabric_in
    from polarfab.fabric import Fabric

    known = fabric.loaded.inventory if fabric.loaded else None
    if named is None and known and known.installed:
        if fabric_in(output) == fabric.name:
            named = output
        else:
            say(f"installed: true: {output} has no earlier build of it, so cables are planned anew")
    return Fabric.load(named) if named else None
