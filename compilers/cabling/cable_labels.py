"""The numbers on the labels of cables and bundles, which stay when a fabric changes.

A *bundle* is all cables from one rack to another between two clusters. A new fabric has its cables
numbered from 1 (`cable_plan`). A compile calls `with_labels`, which keeps the numbers of an earlier
build, and `with_numbers_of_whole` where links are missing: then cables keep the numbers that they
have in the whole fabric.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables, cables_of
from compilers.spec.allocations import (
    BUNDLE,
    CABLE,
    SIZES,
    AllocatedNumbers,
    Allocations,
    assign_numbers,
)
from compilers.wiring.hardware import Hardware
from compilers.wiring.link_numbers import link_key
from compilers.wiring.wiring import Wiring


def with_numbers_of_whole(hardware: Hardware, whole: Wiring, damaged: Wiring) -> Hardware:
    """The hardware of a damaged fabric, with the cable and bundle numbers of the whole fabric.

    Hosts whose ports are missing are marked as broken (`Hardware.host_broken`).

    Args:
        hardware: the hardware of the whole fabric.
        whole: the wiring of the whole fabric.
        damaged: the wiring without what is missing.
    """
    before, after = cables_of(whole, hardware), cables_of(damaged, hardware)
    keys = before.keys()
    order = np.argsort(keys)
    # int64[E], the index of each remaining cable among the cables of the whole fabric.
    index = order[np.searchsorted(keys, after.keys(), sorter=order)]
    bundle_number = np.zeros(len(after.bundles.cables), np.int64)
    is_bundled = after.bundle >= 0
    bundle_before = before.bundle[index[is_bundled]]
    bundle_number[after.bundle[is_bundled]] = before.bundles.number[bundle_before]
    return replace(
        hardware,
        host_broken=hardware.host_broken | (whole.host_port != damaged.host_port),
        cable_number=before.number[index],
        bundle_number=bundle_number,
    )


def with_labels(
    hardware: Hardware, wiring: Wiring, before: Allocations
) -> tuple[Hardware, dict[str, AllocatedNumbers]]:
    """The hardware of a whole fabric with the numbers on labels, and these numbers by kind.

    Cables and bundles keep the numbers that they had. Where links run through panels, ribbons
    and trunks have labels, and cables have none.

    Args:
        hardware: of the whole fabric.
        wiring: of the whole fabric.
        before: the numbers before.

    Raises:
        Refused: a link is longer than every cable in stock.
    """
    if hardware.panels:
        return hardware, {}
    cables = cables_of(wiring, hardware)
    labels = {}
    for kind, keys in ((CABLE, cable_keys(cables)), (BUNDLE, bundle_keys(cables))):
        if numbers_before := before.of(kind):
            order = _order_of_new_cables(cables) if kind == CABLE else range(len(keys))
            keys_in_order = (keys[index] for index in order)
            numbers = assign_numbers(numbers_before, keys_in_order, SIZES[kind], first=1)
            labels[kind] = AllocatedNumbers({key: numbers.used[key] for key in keys}, numbers.freed)
        else:
            labels[kind] = AllocatedNumbers({key: n for n, key in enumerate(keys, 1)})
    cable_number, bundle_number = (
        np.array(list(labels[kind].used.values()), np.int64) for kind in (CABLE, BUNDLE)
    )
    if _are_counted_from_1(cable_number) and _are_counted_from_1(bundle_number):
        return hardware, labels
    return replace(hardware, cable_number=cable_number, bundle_number=bundle_number), labels


def _are_counted_from_1(numbers: NDArray[np.int64]) -> bool:
    """Whether numbers are 1, 2, 3 and so on, which hardware without numbers means."""
    return np.array_equal(numbers, np.arange(1, len(numbers) + 1))


def _order_of_new_cables(cables: Cables) -> list[int]:
    """The indexes of cables in the order in which new cables get numbers.

    That is the order of cluster and rack of their newer node. So a fabric that grows twice gets the
    numbers that it would get if it grew once.
    """
    hardware, newer = cables.hardware, cables.ends.max(axis=1)
    order: list[int] = np.lexsort((hardware.rack[newer], hardware.cluster[newer])).tolist()
    return order


def cable_keys(cables: Cables) -> list[str]:
    """The key of each cable in allocations."""
    lower, upper = np.sort(cables.ends, axis=1).T.tolist()
    return list(map(link_key, lower, upper, cables.socket.tolist()))


def bundle_keys(cables: Cables) -> list[str]:
    """The key of each bundle in allocations."""
    bundles = cables.bundles
    ends = zip(bundles.racks.tolist(), bundles.clusters.tolist(), strict=True)
    return [cables.hardware.bundle_key(*pair) for pair in ends]
