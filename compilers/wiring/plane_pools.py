"""The parts of the address pools that planes get, and checks of the addresses outside them.

The *planes* of a fabric are parallel fabrics of one topology. Each has a prefix of every pool as a
pool of its own. The switch at a vertex takes a *block* of addresses from each pool of its plane
(`compilers.wiring.addressing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import TYPE_CHECKING, TypeVar

from compilers.spec.address_blocks import IPV6_BLOCK_LENGTH, Blocks, block_count, ipv4_block_length
from compilers.spec.allocations import POOL
from compilers.spec.cross_checks import check_blocks
from compilers.spec.fabric_file import LoadedFabric
from compilers.topology.families import family_named, family_of, parameters
from compilers.wiring.addressing import planned_blocks

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import AddressingSpec
    from inventory.problems import Finding


Pool = TypeVar("Pool", IPv4Network, IPv6Network)


def block_findings(loaded: LoadedFabric) -> Iterator[Finding]:
    """Yield findings about addresses of management and servers that are in the blocks of hosts.

    Such addresses must be outside the blocks of all planes. The blocks of a plane may begin where
    they did in the previous build.
    """
    spec, blocks = loaded.spec, list[Blocks]()
    family = family_of(spec.topology.family)
    values = parameters(spec.topology.family, spec.topology.parameters())
    supernode_size = family.hierarchy(values)
    count = block_count(family.order(values), supernode_size)
    for plane in range(1, spec.planes + 1):
        pools = pools_of_plane(loaded, plane) if spec.planes > 1 else spec.addressing
        installed = loaded.installed[plane - 1] if loaded.installed else None
        blocks += planned_blocks(pools, spec.hosts_per_node, count, supernode_size, installed)
    yield from check_blocks(loaded.fabric_document.data, loaded.inventory, blocks)


def pools_of_plane(loaded: LoadedFabric, plane: int) -> AddressingSpec:
    """Return the parts of the address pools that a plane gets."""
    pools = loaded.spec.addressing
    return pools.model_copy(
        update={
            "ipv4": _part_of_pool(loaded, pools.ipv4, plane),
            "ipv6": _part_of_pool(loaded, pools.ipv6, plane) if pools.ipv6 else None,
        }
    )


def _part_of_pool(loaded: LoadedFabric, pool: Pool, plane: int) -> Pool:
    """Return a plane's part of a pool of addresses.

    If all planes can keep the blocks of the previous build, it is the part around the plane's
    blocks (`_bits_of_kept_parts`). Otherwise the pool is divided anew (`part_of`).
    """
    planes = loaded.spec.planes
    new_part = part_of(pool, plane, planes)
    allocated = [installed.allocations.of(POOL).used for installed in loaded.installed]
    # The first address of each plane's blocks in the previous build.
    firsts = [used[f"ipv{pool.version}"] for used in allocated if f"ipv{pool.version}" in used]
    is_inside = all(type(pool)((first, pool.max_prefixlen)).subnet_of(pool) for first in firsts)
    if len(set(firsts)) != planes or not is_inside:
        return new_part
    most_bits = pool.max_prefixlen - new_part.prefixlen
    bits = _bits_of_kept_parts(firsts, most_bits, _addresses_per_plane(loaded, pool))
    if bits is None:
        return new_part
    return type(pool)((firsts[plane - 1] >> bits << bits, pool.max_prefixlen - bits))


def _bits_of_kept_parts(firsts: Sequence[int], most_bits: int, needed: int) -> int | None:
    """Return the host bits of the largest prefixes of one size that hold one plane's blocks each.

    None if a plane's blocks do not fit into its prefix.

    >>> _bits_of_kept_parts([0, 64], 8, 60), _bits_of_kept_parts([0, 64], 8, 70)
    (6, None)

    Args:
        firsts: the first address of each plane's blocks, all different.
        most_bits: the host bits of the largest prefix that is tried.
        needed: how many addresses the blocks of a plane take.
    """
    bits = most_bits
    # Halve the prefixes until no two planes are in one.
    while len({first >> bits for first in firsts}) < len(firsts):
        bits -= 1
    size = 1 << bits
    return bits if all(first % size + needed <= size for first in firsts) else None


def _addresses_per_plane(loaded: LoadedFabric, pool: Pool) -> int:
    """Return how many addresses of a pool the blocks of a plane take."""
    topology = loaded.spec.topology
    values = parameters(topology.family, topology.parameters())
    family = family_named(topology.family)
    length = IPV6_BLOCK_LENGTH
    if pool.version == 4:
        length = ipv4_block_length(loaded.spec.hosts_per_node)
        # Blocks that were larger in the previous build keep their length.
        for installed in loaded.installed:
            length = min(length, installed.block_length or length)
    blocks = block_count(family.order(values), family.hierarchy(values)) if family else 0
    return blocks << (pool.max_prefixlen - length)


def part_of(pool: Pool, plane: int, count: int) -> Pool:
    """Return a plane's part of a pool of addresses.

    The pool is divided into equal parts, as many as the next power of two from `count`.

    >>> part_of(IPv4Network("10.0.0.0/16"), 2, 3)
    IPv4Network('10.0.64.0/18')
    """
    length = pool.prefixlen + (count - 1).bit_length()
    size = 1 << (pool.max_prefixlen - length)
    return type(pool)((int(pool.network_address) + (plane - 1) * size, length))
