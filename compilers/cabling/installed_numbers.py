"""The numbers that a fabric has already, by an earlier build and the file of allocations.

A compile and an expansion read them here, and `fabric_numbers.allocate` keeps them. *Allocations*
are the numbers of links, cables, hosts and switches, one row each (`compilers.spec.allocations`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from compilers.cabling.cable_labels import bundle_keys, cable_keys
from compilers.cabling.cable_plan import cables_of, hardware_of
from compilers.cabling.fabric_numbers import vertex_numbers
from compilers.spec.allocations import (
    ASN,
    BUNDLE,
    CABLE,
    HOST,
    LENGTH,
    LINK,
    POOL,
    VERTEX,
    AllocatedNumbers,
    Allocations,
)
from compilers.spec.fabric_file import LoadedFabric
from compilers.spec.installed import InstalledPlane
from compilers.spec.node_systems import ROUTING_VALUES
from compilers.tables.build import Build
from compilers.topology.labelled_graph import EXPANDED
from compilers.wiring.as_numbers import as_number_rows, as_numbers
from compilers.wiring.hardware import Hardware
from compilers.wiring.link_numbers import link_numbers, numbers_by_key
from inventory.problems import InputError

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from compilers.spec.fabric_spec import AddressingSpec


GROWING = ("clusters", "file")
"""Parameters of a topology that change as it grows."""
ROUTING = "routing"
"""The word of `Build.control` for where routes come from."""


def installed_in(build: Build) -> InstalledPlane:
    """What a build of one plane has: nodes, ports and numbers."""
    wiring, hardware = build.wiring, build.hardware
    return InstalledPlane(
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
    loaded: LoadedFabric, builds: Sequence[Build], last_builds: Sequence[Build]
) -> tuple[InstalledPlane, ...]:
    """What is installed in each plane: what its build has, with the numbers of the allocations.

    Args:
        loaded: the fabric, whose file of allocations goes before the numbers in a build.
        builds: of an earlier compile, one a plane; () without one.
        last_builds: the proved build that was in the folder before that one, and is kept so that
            `folder --undo` can put it back; () without one. Its numbers stay reserved, so that they
            are still free if it comes back.

    Raises:
        InputError: file and build are not of one fabric.
    """
    count = loaded.spec.planes
    planes = range(1, count + 1) if count > 1 else (0,)
    _require_planes(loaded, planes)
    if builds:
        installed = [installed_in(build) for build in builds]
    elif loaded.allocations:
        installed = [InstalledPlane.of_allocations(loaded.allocations[plane]) for plane in planes]
    else:
        return ()
    for i, plane in enumerate(planes):
        allocations = installed[i].allocations
        if builds and loaded.allocations:
            listed = loaded.allocations[plane]
            _require_one_fabric(listed, allocations, loaded)
            listed = _with_blocks_in_pools(listed, allocations, loaded.spec.addressing)
            allocations = listed.with_reserved(allocations)
        if len(last_builds) == count:
            allocations = allocations.with_reserved(numbers_in(last_builds[i]))
        installed[i] = replace(installed[i], allocations=allocations)
    return tuple(installed)


def _require_planes(loaded: LoadedFabric, planes: Sequence[int]) -> None:
    """Pass when the file of allocations, if there is one, has numbers of these planes.

    Raises:
        InputError: it has those of other ones.
    """
    if loaded.allocations and [*loaded.allocations] != [*planes]:
        count = len(planes)
        required = f"the numbers of {count} planes" if count > 1 else "the numbers of one plane"
        given = f"those of planes {', '.join(map(str, loaded.allocations))}"
        todo = "name the file of this fabric, or another one that does not exist yet"
        raise InputError.of(required, given, todo, str(loaded.allocations_file))


def _with_blocks_in_pools(
    listed: Allocations, built: Allocations, pools: AddressingSpec
) -> Allocations:
    """The numbers of a file; blocks outside the pools begin where they do in the build.

    This happens after a renumbering was given up:

    1. The blocks of a build begin at 10.4.0.0, in the pool 10.0.0.0/8.
    2. The spec gets the pool 172.16.0.0/12. A compile writes a new build, and into the file that
       blocks begin at 172.16.0.0.
    3. `folder --undo` puts the earlier build back. The file stays as it is.
    4. The earlier spec is compiled. The file states a block outside its pool, so the blocks begin
       at 10.4.0.0 again, as in the build.

    Args:
        listed: the numbers of the file.
        built: the numbers of the build.
        pools: the pools of addresses now.
    """
    listed_first, built_first = listed.of(POOL).used, built.of(POOL).used
    if not listed_first:
        return listed
    first = dict(listed_first)
    for word, pool in (("ipv4", pools.ipv4), ("ipv6", pools.ipv6)):
        if pool and word in listed_first and word in built_first:
            pool_range = range(int(pool.network_address), int(pool.broadcast_address) + 1)
            if listed_first[word] not in pool_range and built_first[word] in pool_range:
                first[word] = built_first[word]
    return replace(listed, numbers={**listed.numbers, POOL: AllocatedNumbers(first)})


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
        numbers = {**listed.numbers, POOL: AllocatedNumbers(pools)} | _as_numbers_in(build)
        return replace(listed, numbers=numbers)
    wiring, hardware = build.wiring, hardware_of(build)
    links = build.allocations.of(LINK)
    if not links:
        links = AllocatedNumbers(numbers_by_key(wiring, link_numbers(wiring, {})))
    numbers = {LINK: links}
    if not hardware.panels:  # with panels, ribbons and trunks have labels, and cables have none
        cables = cables_of(wiring, hardware)
        keys = zip(cable_keys(cables), cables.number.tolist(), strict=True)
        bundles = zip(bundle_keys(cables), cables.bundles.number.tolist(), strict=True)
        numbers |= {CABLE: AllocatedNumbers(dict(keys)), BUNDLE: AllocatedNumbers(dict(bundles))}
    vertices, names = vertex_numbers(wiring.names, hardware.serial)
    numbers |= {VERTEX: vertices, POOL: AllocatedNumbers(pools)} | _as_numbers_in(build)
    return Allocations(numbers, names)


def _as_numbers_in(build: Build) -> dict[str, AllocatedNumbers]:
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
