"""The numbers of a fabric: those that it had, and new ones for what is new.

A compile and an expansion call `allocate`, which gives a whole fabric its numbers: of links,
cables, hosts and switches. `installed_in` reads from a build the numbers that it gave, so that a
later compile gives the same ones. *Allocations* are these numbers, one row each
(`compilers.spec.allocations`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, Any

from compilers.cabling.cable_labels import bundle_keys, cable_keys, with_labels
from compilers.cabling.cable_plan import cables_of, hardware_of
from compilers.spec.allocations import (
    ASN,
    BUNDLE,
    CABLE,
    HOST,
    LENGTH,
    LINK,
    POOL,
    SIZES,
    VERTEX,
    Allocations,
    Numbers,
    assign_numbers,
)
from compilers.spec.fabric_file import LoadedFabric
from compilers.spec.installed import Installed
from compilers.spec.node_systems import ROUTING_VALUES
from compilers.tables.build import Build
from compilers.topology.labelled_graph import EXPANDED
from compilers.wiring.addressing import Addressing
from compilers.wiring.as_numbers import as_number_rows, as_numbers
from compilers.wiring.hardware import Hardware
from compilers.wiring.link_numbers import default_numbers, link_numbers, numbers_by_key
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from compilers.spec.fabric_spec import AddressingSpec

GROWING = ("clusters", "file")
"""Parameters of a topology that change as it grows."""
LINK_POOLS = ("links", "links6")
"""The words of `Build.control` for the pools of links."""
ROUTING = "routing"
"""The word of `Build.control` for where routes come from."""


@dataclass(frozen=True, slots=True)
class WholeFabric:
    """A whole fabric, as if nothing were missing, before it has numbers."""

    wiring: Wiring
    """The ports of links."""
    hardware: Hardware | None
    """Where nodes stand; None without an inventory."""
    addressing: Addressing
    """The blocks of addresses."""
    hosts: Mapping[str, int]
    """The number of each host that the inventory names, at its switch, by vertex and name."""
    links: int
    """For how many links the pool of links has addresses."""
    as_numbers: Sequence[int] | None
    """The AS number of each vertex; None where switches have none."""
    base: Mapping[str, Any]
    """`Build.base`, by which AS numbers follow from vertices where they have no rows."""


def links_in(pools: Iterable[IPv4Network | IPv6Network | None], marks: bool) -> int:
    """Return for how many links pools have addresses: two, and two more for marked packets.

    >>> links_in([IPv4Network("10.9.0.0/24"), None], marks=False)
    128

    Args:
        pools: those that fabric.yaml names; None for the usual one.
        marks: whether packets are marked.
    """
    sizes = (pool.num_addresses // (4 if marks else 2) for pool in pools if pool)
    return min((SIZES[LINK], *sizes))


def allocate(fabric: WholeFabric, before: Allocations) -> tuple[Hardware | None, Allocations]:
    """Give a fabric its numbers.

    A fabric without an inventory, whose numbers follow from its ports, has no allocations.

    Args:
        fabric: the fabric.
        before: the numbers that it had; none for a new one.

    Returns:
        The hardware with the numbers on labels, and all numbers.

    Raises:
        Refused: a link is longer than every cable in stock.
    """
    wiring, hardware, links_before = fabric.wiring, fabric.hardware, before.of(LINK)
    as_number = _as_number_rows(fabric, before.of(ASN))
    if hardware is None and not links_before:
        return None, Allocations(_as_numbers_unless_default(fabric, as_number))
    types_in_use = sorted(set(wiring.node_type.tolist()))
    by_ports = Numbers(numbers_by_key(wiring, default_numbers(wiring, types_in_use)))
    links = by_ports
    if links_before:
        links = assign_numbers(links_before, by_ports.used, fabric.links)
    if hardware is None:
        link_rows = {} if links == by_ports else {LINK: links}
        return None, Allocations(link_rows | _as_numbers_unless_default(fabric, as_number))
    hardware, labels = with_labels(hardware, wiring, before)
    vertices, names = vertex_numbers(wiring.names, hardware.serial)
    numbers = {
        VERTEX: vertices,
        LINK: links,
        **labels,
        HOST: _host_numbers(fabric.hosts, before.of(HOST)),
        **({ASN: as_number} if as_number else {}),
        POOL: Numbers(fabric.addressing.first_addresses()),
    }
    return hardware, Allocations(numbers, names)


def _as_number_rows(fabric: WholeFabric, before: Numbers) -> Numbers:
    """The AS numbers of a fabric as rows; none where switches have none."""
    return Numbers() if fabric.as_numbers is None else as_number_rows(fabric.as_numbers, before)


def _as_numbers_unless_default(fabric: WholeFabric, rows: Numbers) -> dict[str, Numbers]:
    """The AS numbers of a fabric as rows; {} if all follow from its vertices and nodes."""
    defaults = as_numbers(fabric.base, fabric.wiring.names, Allocations()).tolist()
    is_default = not rows.freed and [*rows.used.values()] == defaults
    return {ASN: rows} if rows and not is_default else {}


def vertex_numbers(names: Sequence[str], serials: Sequence[str]) -> tuple[Numbers, dict[str, str]]:
    """The vertex of each node by its serial, else by its name; and the name of each serial's node.

    Args:
        names: of the nodes, by vertex.
        serials: of the first nodes, "" where unknown. One that is also another's is not used.
    """
    all_serials = [*serials, *[""] * (len(names) - len(serials))]
    count = Counter((*all_serials, *names))
    vertices, name_of_serial = dict[str, int](), dict[str, str]()
    for vertex, (name, serial) in enumerate(zip(names, all_serials, strict=True)):
        if serial and count[serial] == 1:
            vertices[serial] = vertex
            name_of_serial[serial] = name
        else:
            vertices[name] = vertex
    return Numbers(vertices), name_of_serial


def _host_numbers(hosts: Mapping[str, int], before: Numbers) -> Numbers:
    """The numbers of hosts, and those that stay reserved at the switches.

    Args:
        hosts: the number of each host, by vertex and name.
        before: the numbers before.
    """
    in_use = {(_vertex(key), number) for key, number in hosts.items()}
    reserved = {**before.freed, **before.used}
    freed = {
        key: number
        for key, number in reserved.items()
        if key not in hosts and (_vertex(key), number) not in in_use
    }
    return Numbers(hosts, freed)


def _vertex(key: str) -> str:
    """The vertex in the key of a host, such as `3` in `3/db1`."""
    return key.partition("/")[0]


def installed_in(build: Build) -> Installed:
    """What a build of one plane has: nodes, ports and numbers."""
    wiring, hardware = build.wiring, build.hardware
    return Installed(
        names=wiring.names,
        serials=hardware.serial if hardware else (),
        port_of_link=wiring.port_name_of_link(),
        port_of_host=wiring.port_name_of_host(),
        number_of_host=_host_numbers_in(build),
        allocations=numbers_in(build),
        racks_and_units=_racks_and_units(hardware) if hardware else (),
        block_length=build.addressing.ipv4_length,
    )


def _racks_and_units(hardware: Hardware) -> tuple[tuple[str, int], ...]:
    """The rack and the unit of each node."""
    racks = [hardware.rack_names[rack] for rack in hardware.rack.tolist()]
    return tuple(zip(racks, hardware.unit.tolist(), strict=True))


def installed_planes(
    loaded: LoadedFabric, builds: Sequence[Build], put_aside: Sequence[Build]
) -> tuple[Installed, ...]:
    """What is installed in each plane: what its build has, with the numbers of the allocations.

    Args:
        loaded: the fabric, whose file of allocations goes before the numbers in a build.
        builds: of an earlier compile, one a plane; () without one.
        put_aside: an earlier build that was put aside. The numbers that it gave stay reserved.

    Raises:
        InputError: file and build are not of one fabric.
    """
    count = loaded.spec.planes
    planes = range(1, count + 1) if count > 1 else (0,)
    if loaded.allocations and [*loaded.allocations] != [*planes]:
        required = f"the numbers of {count} planes" if count > 1 else "the numbers of one plane"
        given = f"those of planes {', '.join(map(str, loaded.allocations))}"
        todo = "name the file of this fabric, or another one that does not exist yet"
        raise InputError.of(required, given, todo, str(loaded.allocations_file))
    if builds:
        installed = [installed_in(build) for build in builds]
    elif loaded.allocations:
        installed = [Installed.of_allocations(loaded.allocations[plane]) for plane in planes]
    else:
        return ()
    for i, plane in enumerate(planes):
        allocations = installed[i].allocations
        if builds and loaded.allocations:
            listed = loaded.allocations[plane]
            _require_one_fabric(listed, allocations, loaded)
            listed = _with_blocks_in_pools(listed, allocations, loaded.spec.addressing)
            allocations = listed.with_reserved(allocations)
        if len(put_aside) == count:
            allocations = allocations.with_reserved(numbers_in(put_aside[i]))
        installed[i] = replace(installed[i], allocations=allocations)
    return tuple(installed)


def _with_blocks_in_pools(
    listed: Allocations, built: Allocations, pools: AddressingSpec
) -> Allocations:
    """The numbers of a file; blocks outside the pools begin where they do in the build.

    A file is not taken back when its build is: it still has the blocks that were given up.

    Args:
        listed: the numbers of the file.
        built: the numbers of the build.
        pools: the pools of addresses now.
    """
    first, built_numbers = dict(listed.of(POOL).used), built.of(POOL).used
    for word, pool in (("ipv4", pools.ipv4), ("ipv6", pools.ipv6)):
        if pool and word in first and word in built_numbers:
            pool_range = range(int(pool.network_address), int(pool.broadcast_address) + 1)
            if first[word] not in pool_range and built_numbers[word] in pool_range:
                first[word] = built_numbers[word]
    return replace(listed, numbers={**listed.numbers, POOL: Numbers(first)}) if first else listed


def require_same_topology(loaded: LoadedFabric, builds: Sequence[Build]) -> None:
    """Pass when builds are of the topology and the planes of a spec.

    The fabric may have grown by clusters since, or its graph by links.

    Raises:
        InputError: they are not.
    """
    spec, topology = loaded.spec.topology, builds[0].topology
    stated, built = spec.parameters(), topology.parameters
    fixed = [name for name in stated if name in built and name not in GROWING]
    families = {spec.family.removesuffix(EXPANDED), topology.family.removesuffix(EXPANDED)}
    todo = "name a build of this fabric, or compile into a folder without one"
    if len(families) > 1 or any(stated[name] != built[name] for name in fixed):
        title = " ".join([spec.family, *(f"{name}={stated[name]}" for name in fixed)])
        raise InputError.of(f"an earlier build of {title}", topology.title(), todo)
    count = loaded.spec.planes
    if len(builds) != count:
        planes = "one plane" if count == 1 else f"{count} planes"
        raise InputError.of(f"an earlier build of {planes}", f"one of {len(builds)}", todo)


def _require_one_fabric(listed: Allocations, built: Allocations, loaded: LoadedFabric) -> None:
    """Pass when nodes have the same vertices in a file and in a build.

    Raises:
        InputError: a node has another one.
    """
    built_numbers = built.of(VERTEX).used
    for key, vertex in listed.of(VERTEX).used.items():
        if built_numbers.get(key, vertex) != vertex:
            raise InputError.of(
                file=str(loaded.allocations_file),
                required=f"vertex {built_numbers[key]} for {key}, as in the build that is there",
                given=str(vertex),
                todo="take the file that was written with this build",
            )


def numbers_in(build: Build) -> Allocations:
    """The allocations of a build; those that follow from its ports if it has no list of them.

    The length of a block is among them.
    """
    pools = {**build.addressing.first_addresses(), LENGTH: build.addressing.ipv4_length}
    if build.allocations and build.hardware:
        listed = build.allocations
        numbers = {**listed.numbers, POOL: Numbers(pools)} | _as_numbers_in(build)
        return replace(listed, numbers=numbers)
    wiring, hardware = build.wiring, hardware_of(build)
    links = build.allocations.of(LINK)
    if not links:
        links = Numbers(numbers_by_key(wiring, link_numbers(wiring, {})))
    numbers = {LINK: links}
    if not hardware.panels:
        cables = cables_of(wiring, hardware)
        keys = zip(cable_keys(cables), cables.number.tolist(), strict=True)
        bundles = zip(bundle_keys(cables), cables.bundles.number.tolist(), strict=True)
        numbers |= {CABLE: Numbers(dict(keys)), BUNDLE: Numbers(dict(bundles))}
    vertices, names = vertex_numbers(wiring.names, hardware.serial)
    numbers |= {VERTEX: vertices, POOL: Numbers(pools)} | _as_numbers_in(build)
    return Allocations(numbers, names)


def _as_numbers_in(build: Build) -> dict[str, Numbers]:
    """The AS numbers of a build as rows, with those that an older build has no rows for."""
    rows = build.allocations.of(ASN)
    if not rows and build.control.get(ROUTING) == ROUTING_VALUES["ebgp"]:
        rows = as_number_rows(
            as_numbers(build.base, build.wiring.names, Allocations()).tolist(), rows
        )
    return {ASN: rows} if rows else {}


def _host_numbers_in(build: Build) -> dict[tuple[int, str], int]:
    """The number of each host at its switch, by vertex and name, with those that are reserved."""
    numbers = build.wiring.host_numbers()
    for key, number in build.allocations.of(HOST).freed.items():
        vertex, _, name = key.partition("/")
        numbers.setdefault((int(vertex), name), number)
    return numbers
