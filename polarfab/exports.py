"""A fabric for other programs: as a graph of networkx, and in files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inventory.problems import InputError

if TYPE_CHECKING:
    from networkx import Graph

    from polarfab.fabric import Fabric


def to_networkx(fabric: Fabric) -> Graph[int]:
    """The cabled nodes as a networkx graph: `compilers.cabling.networkx_graph` has its keys."""
    from compilers.cabling.networkx_graph import to_networkx

    return to_networkx(fabric.build)


def export(fabric: Fabric, form: str) -> dict[str, str]:
    """Files for another program, name to text; extensions register the formats.

    Raises:
        InputError: there is no such format, there are no hosts, names do not fit, or there are
            more pairs of hosts than the format holds.
    """
    from compilers.entry_points import EXPORTS, load, registered

    if form not in registered(EXPORTS):
        raise InputError.of(f"one of {', '.join(registered(EXPORTS))}", form, key="format")
    return dict(load(registered(EXPORTS)[form][0])(fabric.builds))


def netbox(
    fabric: Fabric, site: str = "", role: str = "switch", target: str = ""
) -> dict[str, str]:
    """The hardware as files for NetBox's imports, name to text, in the order to import them.

    Args:
        fabric: from its spec.
        site: of everything; the fabric's name without it.
        role: of every switch; panels have `cassette` or `patch panel`.
        target: whose names ports have; "" for the inventory's.

    Raises:
        InputError: the inventory cannot hold the fabric, or it began as a build.
    """
    from compilers.cabling.netbox_export import files
    from compilers.estimates import Size, require

    if fabric.loaded is None:
        raise InputError.of("a fabric from its spec", "a build")
    topology = fabric.loaded.spec.topology
    require(Size.of_family(topology.family, topology.parameters()), "inventory export")
    return dict(files(fabric.loaded, site or fabric.name, role, target))
