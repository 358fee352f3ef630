"""The library's functions for cables: their schedule, their check, and the links that are lost.

Each takes a `Fabric`. The verbs `cables`, `check` and `explain` print what they return.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from inventory.problems import InputError

if TYPE_CHECKING:
    from compilers.audit.wiring_report import WiringReport
    from compilers.cabling.cable_schedule import CableSchedule
    from compilers.wiring.lost_links import LostLinks
    from polarfab.fabric import Fabric


def cables(fabric: Fabric, rack: str = "") -> CableSchedule:
    """The cable schedule of all planes; its method `text` prints it, for example as `csv`.

    Args:
        fabric: the fabric. A fabric from its spec is not compiled for this. Its ports are planned
            anew, unless `Fabric.keeping` has the ports of a build.
        rack: only the cables with an end in the rack of this name.

    Raises:
        InputError: there is no such rack, or the inventory cannot hold the fabric.

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> polarfab.cables(fabric)
        <CableSchedule lab: 24 cables>
    """
    from compilers.cabling.cable_schedule import CableSchedule
    from compilers.planes import cabled_planes
    from polarfab.fabric import with_installed

    if fabric.loaded and not fabric.compiled:
        return CableSchedule.of(cabled_planes(with_installed(fabric.loaded, None)), rack)
    return CableSchedule.of(fabric.builds, rack)


def cable_paths(fabric: Fabric, links: Iterable[tuple[int, int]]) -> list[str]:
    """The plugs, panels and trunks of links, in lines of text.

    Args:
        fabric: the fabric.
        links: the two vertices of each link. Parallel cables are listed one by one.

    Raises:
        InputError: there are links, and the fabric has no panels or shuffled fibres.
    """
    from compilers.cabling.cable_plan import cables_of, hardware_of
    from compilers.cabling.panel_plan import layer1, panel_plan, require_whole

    ends = list(links)
    if not ends:
        return []
    build = fabric.build
    hardware = hardware_of(build)
    require_whole(hardware)
    plan = panel_plan(build.topology, build.wiring, hardware)
    if plan is None and not any(facts.plug for facts in hardware.types):
        todo = "add `panels: {trunk: mpo24}` to the inventory, or `shuffle` to a node type"
        raise InputError.of("a fabric with panels or shuffled fibres", fabric.name, todo)
    planned = plan.cables if plan else cables_of(build.wiring, hardware)
    return [line for near, far in ends for line in layer1(build.wiring, planned, plan, near, far)]


def lost_links(fabric: Fabric) -> tuple[LostLinks, ...]:
    """The links and hosts that each plane lacks because of disabled ports, dead links and spares.

    It is empty for a fabric that was loaded from a build.

    Raises:
        InputError: the inventory cannot hold the fabric.

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> polarfab.lost_links(fabric)[0].links
        ()
    """
    from compilers.wiring.fabric_planes import each_plane
    from compilers.wiring.lost_links import LostLinks
    from polarfab.fabric import with_installed

    if fabric.loaded is None:
        return ()
    return tuple(map(LostLinks.of, each_plane(with_installed(fabric.loaded, None))))


def check_wiring(
    fabric: Fabric, facts: Iterable[str | Path], form: str | None = None
) -> WiringReport:
    """Compare neighbour tables with the plan of all planes, and find the smallest repair.

    Args:
        fabric: the fabric; it is compiled if it is not.
        facts: files with neighbour tables (lldpctl, SONiC, EOS, …), and folders of such files.
        form: the format of the files; None to recognize each by its content.

    Raises:
        InputError: a file cannot be read, or no file is of a node of this fabric.
    """
    from compilers.audit.wiring_report import WiringReport

    return WiringReport.of(fabric.builds, map(Path, facts), form)
