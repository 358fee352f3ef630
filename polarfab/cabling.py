"""A fabric as hardware: its cables as planned, as they are, and what is lost."""

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
    """The cable schedule of all planes; `.text("csv")` and so on is what people print.

    Args:
        fabric: one from its spec is not compiled for it. Its ports are planned anew, unless
            `Fabric.keeping` has those of a build.
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
    """For each link, by its vertices, the plugs, panels and trunks from one to the other.

    Parallel cables are listed one by one.

    Raises:
        InputError: links are asked for, and none run through panels or shuffled fibres.
    """
    from compilers.cabling.cable_plan import cables_of, hardware_of
    from compilers.cabling.panel_plan import layer1, panel_plan, require_whole

    if not (wanted := list(links)):
        return []
    build = fabric.build
    hardware = hardware_of(build)
    require_whole(hardware)
    plan = panel_plan(build.topology, build.wiring, hardware)
    if plan is None and not any(facts.plug for facts in hardware.types):
        todo = "add `panels: {trunk: mpo24}` to the inventory, or `shuffle` to a node type"
        raise InputError.of("a fabric with panels or shuffled fibres", fabric.name, todo)
    planned = plan.cables if plan else cables_of(build.wiring, hardware)
    return [line for link in wanted for line in layer1(build.wiring, planned, plan, *link)]


def lost_links(fabric: Fabric) -> tuple[LostLinks, ...]:
    """The links and hosts that disabled ports, dead links and spares leave out, and their cost.

    Of each plane; empty for a fabric that began as a build.

    Raises:
        InputError: the inventory cannot hold the fabric.

    Example:
        >>> import polarfab
        >>> lab = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
        >>> fabric = polarfab.Fabric.from_spec(lab)
        >>> polarfab.lost_links(fabric)[0].links
        ()
    """
    from compilers.wiring.lost_links import LostLinks
    from compilers.wiring.placed_fabric import each_plane
    from polarfab.fabric import with_installed

    if fabric.loaded is None:
        return ()
    return tuple(map(LostLinks.of, each_plane(with_installed(fabric.loaded, None))))


def check_wiring(
    fabric: Fabric, facts: Iterable[str | Path], form: str | None = None
) -> WiringReport:
    """Compare neighbour tables with the plan of all planes, and find the smallest repair.

    Args:
        fabric: compiled, or it is compiled now.
        facts: files with neighbour tables (lldpctl, SONiC, EOS, …), and folders of them.
        form: their format; None where the content tells.

    Raises:
        InputError: a file cannot be read, or none is of a node of this fabric.
    """
    from compilers.audit.wiring_report import WiringReport

    return WiringReport.of(fabric.builds, map(Path, facts), form)
