"""A fabric as hardware: its cables, what others are told of it, what is really plugged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from inventory.problems import InputError
from polarfab.contract import contracted

if TYPE_CHECKING:
    from networkx import Graph

    from compilers.audit.wiring_report import WiringReport
    from compilers.cabling.cable_schedule import CableSchedule
    from compilers.spec.fabric_file import LoadedFabric
    from compilers.tables.build import Build


@contracted
class CabledFabric(ABC):
    """The part of `Fabric` about cables, and files for other programs."""

    loaded: LoadedFabric | None
    compiled: tuple[Build, ...]

    @property
    @abstractmethod
    def name(self) -> str:
        """What the spec calls it."""

    @property
    @abstractmethod
    def build(self) -> Build:
        """The build of the one plane."""

    @property
    @abstractmethod
    def builds(self) -> tuple[Build, ...]:
        """The build of each plane."""

    def to_networkx(self) -> Graph[int]:
        """The cabled nodes as a networkx graph: `compilers.cabling.networkx_graph` has its keys."""
        from compilers.cabling.networkx_graph import to_networkx

        return to_networkx(self.build)

    def cables(self, phases: int = 8, phase: int = 0, rack: str = "") -> CableSchedule:
        """The cable schedule of all planes; `.text("csv")` and so on is what people print.

        A fabric from its spec is not compiled for it.

        Args:
            phases: how many phases the installation has at most.
            phase: only the cables of this phase, from 1; 0 for all.
            rack: only the cables with an end in the rack of this name.

        Raises:
            InputError: there is no such phase or rack, or the inventory cannot hold the fabric.
        """
        from compilers.cabling.cable_schedule import CableSchedule
        from compilers.planes import cabled_planes

        if self.loaded and not self.compiled:
            return CableSchedule.of(cabled_planes(self.loaded), phases, phase, rack)
        return CableSchedule.of(self.builds, phases, phase, rack)

    def through(self, links: Iterable[tuple[int, int]]) -> list[str]:
        """For each link, by its vertices, the plugs, panels and trunks from one to the other.

        Parallel cables are listed one by one.

        Raises:
            InputError: links are asked for, and none run through panels or shuffled fibres.
        """
        from compilers.cabling.cable_plan import cables_of, hardware_of
        from compilers.cabling.panel_plan import layer1, panel_plan, require_whole

        if not (asked := list(links)):
            return []
        build = self.build
        known = hardware_of(build)
        require_whole(known)
        plan = panel_plan(build.topology, build.wiring, known)
        if plan is None and not any(facts.plug for facts in known.types):
            todo = "add `panels: {trunk: mpo24}` to the inventory, or `shuffle` to a node type"
            raise InputError.of("a fabric with panels or shuffled fibres", self.name, todo)
        cables = plan.cables if plan else cables_of(build.wiring, known)
        return [line for link in asked for line in layer1(build.wiring, cables, plan, *link)]

    def netbox(self, site: str = "", role: str = "switch", target: str = "") -> dict[str, str]:
        """The hardware as files for NetBox's imports, name to text, in the order to import them.

        Args:
            site: that everything stands in; the fabric's name without it.
            role: of every switch; cassettes are of the role `cassette`.
            target: whose names ports have; "" for the inventory's.

        Raises:
            InputError: the inventory cannot hold the fabric, or it began as a build.
        """
        from compilers.cabling.netbox_export import files
        from compilers.estimates import Size, require

        if self.loaded is None:
            raise InputError.of("a fabric from its spec", "a build")
        topology = self.loaded.spec.topology
        require(Size.of_family(topology.family, topology.parameters()), "inventory export")
        return dict(files(self.loaded, site or self.name, role, target))

    def export(self, form: str) -> dict[str, str]:
        """Files for another program, name to text; extensions register the formats.

        Raises:
            InputError: there is no such format, there are no hosts, names do not fit, or there are
                more pairs of hosts than the format holds.
        """
        from compilers.entry_points import EXPORTS, load, registered

        if form not in registered(EXPORTS):
            raise InputError.of(f"one of {', '.join(registered(EXPORTS))}", form, key="--format")
        return dict(load(registered(EXPORTS)[form][0])(self.builds))

    def check_wiring(self, facts: Iterable[str | Path], form: str | None = None) -> WiringReport:
        """Compare neighbour tables with the plan of all planes, and find the smallest repair.

        Args:
            facts: files with neighbour tables (lldpctl, SONiC, EOS, …), and folders of them.
            form: their format; None where the content tells.

        Raises:
            InputError: a file cannot be read, or none is of a node of this fabric.
        """
        from compilers.audit.wiring_report import WiringReport

        return WiringReport.of(self.builds, map(Path, facts), form)
