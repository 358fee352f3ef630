"""Check that the tables of a build are as its `Forwarding` says, whatever balance made them.

A *balance* is a load-balancing rule. It fills the egress classes of a switch, which are forwarding
equivalence classes: a minimal port, *alternates* that share its traffic with weights, and ports for
fast reroute (`protection`; `bounce` for packets that came in by the minimal port). The `Forwarding`
of a build says which alternates its classes have, how traffic is shared, and which failures
switches repair. Each function here yields the values that contradict one of these statements;
`build_soundness` calls them.

Which links can be alternates or repairs follows from the minimal paths of the neighbours, as for
loop-free alternates (RFC 5286). A neighbour *serves* a class if its own paths to the destinations
of the class do not come back to the switch (`loop_free_alternates`). The links in `eligible` lead
to neighbours that serve a class, as alternates or as repairs. A class is *direct* if its only
destination is the neighbour at its minimal port. If a neighbour serves some destinations of a class
and not others, the class must be split (`partly_…` of `NeighbourPaths`).

In the findings, s is a switch, c an egress class of the switch, and n an index in a list of ports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.link_sets import Bits, Sets, alternate_sets, contain
from compilers.proof.soundness.port_use import Ports, PortUse
from compilers.proof.soundness.unsound import UnsoundValues, unsound_where
from compilers.proof.walks.loop_free_alternates import NeighbourPaths
from compilers.routing.alternate_weights import weight_pairs
from compilers.tables.build import Build
from compilers.tables.packed_alternates import (
    AlternateLinks,
    AlternatePorts,
    AlternateWeights,
    count_set_bits,
)
from compilers.topology import polarity
from inventory.problems import Finding


def check_weights(build: Build) -> Iterator[UnsoundValues]:
    """Classes whose weights do not divide traffic as the build says.

    All alternates need one weight, and the minimal port a weight in the right ratio to it. Nothing
    is required of weights that are fitted, or that are the balance's own (`any`).
    """
    forwarding, classes = build.forwarding, build.tables.classes
    if forwarding.weights in ("fitted", "any") or not classes.alternate.shape[2]:
        return
    class_weights = _class_weights(build)
    # [S, C, 2], the required ratio: of the minimal port's weight to the weight of each alternate.
    ratio = weight_pairs(class_weights.alternates, forwarding.minimal_share).astype(np.int64)
    minimal_part, alternate_part = ratio[..., 0], ratio[..., 1]
    are_equal = class_weights.least_alternate == class_weights.greatest_alternate
    # minimal / alternate == minimal_part / alternate_part, without a division.
    has_ratio = are_equal & (
        class_weights.minimal * alternate_part == class_weights.greatest_alternate * minimal_part
    )

    def finding(s: int, c: int) -> Finding:
        """The finding for class c of a switch."""
        required = f"{ratio[s, c, 0]} to {ratio[s, c, 1]}, the minimal port to each alternate"
        path = (build.wiring.names[s], "weight", c)
        return Finding(path, required, " ".join(map(str, classes.weight[s, c].tolist())))

    yield from unsound_where(~has_ratio & (class_weights.alternates > 0), finding)


class _ClassWeights(NamedTuple):
    """The weights of all classes, int[S, C] each."""

    alternates: NDArray[Any]
    """How many alternates the class has."""
    minimal: NDArray[Any]
    """The weight of the minimal port."""
    least_alternate: NDArray[Any]
    """The least weight of an alternate."""
    greatest_alternate: NDArray[Any]
    """The greatest weight of an alternate."""


def _class_weights(build: Build) -> _ClassWeights:
    """The weights of all classes of a build with alternates."""
    classes = build.tables.classes
    if isinstance(classes.alternate, AlternatePorts) and isinstance(
        classes.weight, AlternateWeights
    ):
        return _packed_weights(classes.alternate.packed, classes.weight.packed)
    is_port, weight = np.asarray(classes.alternate) > 0, np.asarray(classes.weight)
    minimal, alternate = weight[..., 0], weight[..., 1:]
    above_all = np.iinfo(np.uint16).max
    return _ClassWeights(
        alternates=np.count_nonzero(is_port, axis=2),
        minimal=minimal,
        least_alternate=np.where(is_port, alternate, above_all).min(axis=2),
        greatest_alternate=np.where(is_port, alternate, 0).max(axis=2),
    )


def _packed_weights(alternates: AlternateLinks, weights: AlternateLinks) -> _ClassWeights:
    """The weights of all classes whose alternates and weights are packed.

    Args:
        alternates: the links of the alternates, one bit for each, and the ports of links.
        weights: the links of the alternates that have a weight, one bit for each. All of a class
            have one weight. Usually these are the same bits; a damaged build may differ.
    """
    has_port = np.packbits(alternates.port > 0, axis=1)[:, None]
    count = count_set_bits(alternates.links & has_port)
    weighted_count = count_set_bits(weights.links)
    minimal_weight, alternate_weight = weights.weight[..., 0], weights.weight[..., 1]
    return _ClassWeights(
        alternates=count,
        minimal=minimal_weight,
        # 0 if some alternate has no weight.
        least_alternate=np.where(weighted_count >= count, alternate_weight, 0),
        greatest_alternate=np.where(weighted_count > 0, alternate_weight, 0),
    )


def check_class_rows(build: Build, paths: NeighbourPaths) -> Iterator[UnsoundValues]:
    """Classes that have rows for destinations which need different classes.

    The neighbour itself has other alternates than the switches behind it, so it needs a direct
    class. Two destinations that different neighbours can serve as alternates need two classes. This
    is checked only if each destination has a row of its own: an aggregate has a single row for
    destinations that differ.

    Args:
        build: its tables deliver every pair, and have alternates or repairs.
        paths: the paths of the neighbours of its switches.
    """
    forwarding = build.forwarding
    yield from unsound_where(
        paths.leads_to_others & paths.leads_to_neighbour,
        lambda s, c: Finding(
            (build.wiring.names[s], "class", c),
            "rows for the neighbour alone, or none for it",
            "rows for it and for others",
        ),
    )
    yield from _class_numbers(build, paths)
    if build.tables.routes.exact:
        disjoint = forwarding.has_alternates and forwarding.disjoint
        mixed = (
            paths.partly_disjoint_classes() if disjoint else paths.partly_node_protecting_classes()
        )
        yield from _mixed_rows(build, mixed & paths.leads_only_to_others)


def check_alternates(
    build: Build, port_use: PortUse, paths: NeighbourPaths
) -> Iterator[UnsoundValues]:
    """Alternates that a class lacks, or that the build's `Forwarding` does not allow.

    With shortest alternates, classes whose destinations different neighbours serve, too.

    Args:
        build: its tables deliver every pair.
        port_use: the use of its ports.
        paths: the paths of the neighbours of its switches.
    """
    forwarding = build.forwarding
    present = alternate_sets(build, port_use)
    required, allowed = _alternates_by_paths(build, paths)
    if forwarding.alternates == "some":
        required = np.zeros_like(required)
    forbidden = present & ~allowed
    forbidden[~paths.is_used] = 0
    yield from _wrong_links(build, port_use, required & ~present, "{}", "nothing")
    yield from _wrong_links(build, port_use, forbidden, "a path that the policy allows", "{}")
    if forwarding.alternates == "shortest" and build.tables.routes.exact:
        yield from _mixed_rows(build, paths.partly_downstream_classes())


def _alternates_by_paths(build: Build, paths: NeighbourPaths) -> tuple[Sets, Sets]:
    """The alternates that classes must have, and the alternates that they may have.

    Where `Forwarding.alternates` is "some", classes may lack required alternates.
    """
    forwarding = build.forwarding
    eligible = paths.disjoint_links() if forwarding.disjoint else paths.loop_free_links()
    if forwarding.alternates == "shortest":
        downstream = np.packbits(paths.downstream_for_all, axis=2)
        downstream &= eligible
        return downstream, downstream
    if forwarding.marks:  # any neighbour may be an alternate, as it spreads marked packets
        eligible = paths.candidate_links()
    else:  # direct classes have none, unless neighbours bounce packets
        eligible[~paths.leads_only_to_others] = 0
    if not forwarding.bounces:
        return eligible, eligible
    # A neighbour can also be reached over links whose far end bounces packets. In a whole PolarFly
    # every neighbour bounces. In other graphs only loop-free neighbours are required.
    only_direct = paths.leads_to_neighbour & ~paths.leads_to_others
    any_link = paths.candidate_links()
    must_serve_direct = any_link if polarity.is_whole(build.topology) else paths.loop_free_links()
    required = eligible.copy()
    required[only_direct] = must_serve_direct[only_direct]
    return required, np.where(only_direct[..., None], any_link, required)


def check_constructed_alternates(
    build: Build, port_use: PortUse, links: Sets
) -> Iterator[UnsoundValues]:
    """Alternates that differ from those that the family constructs.

    Args:
        build: its alternates are compared. If its `Forwarding` says "some", it may lack alternates.
        port_use: the use of its ports.
        links: uint8[S, C, ⌈K/8⌉], the links of the constructed alternates.
    """
    present = alternate_sets(build, port_use)
    if build.forwarding.alternates != "some":
        yield from _wrong_links(build, port_use, links & ~present, "{}", "nothing")
    yield from _wrong_links(
        build, port_use, present & ~links, "a path that the policy allows", "{}"
    )


def check_no_alternates(build: Build, port_use: PortUse) -> Iterator[UnsoundValues]:
    """All alternates, in a build that says it has none."""
    if build.tables.classes.alternate.shape[2]:
        present = alternate_sets(build, port_use)
        yield from _wrong_links(build, port_use, present, "no alternates", "{}")


def check_repairs(
    build: Build, port_use: PortUse, paths: NeighbourPaths
) -> Iterator[UnsoundValues]:
    """Classes whose ports for fast reroute do not begin with ports that serve.

    Args:
        build: its tables deliver every pair, and packets in transit have one next hop.
        port_use: the use of its ports.
        paths: the paths of the neighbours of its switches.
    """
    forwarding, classes = build.forwarding, build.tables.classes
    eligible = paths.node_protecting_links()
    if forwarding.repairs:
        yield from _repairs(
            build,
            port_use=port_use,
            key="protection",
            order=classes.protection,
            is_checked=paths.is_used,
            eligible=eligible,
        )
    if forwarding.repairs or forwarding.bounces:
        yield from _repairs(
            build,
            port_use=port_use,
            key="bounce",
            order=classes.bounce,
            is_checked=paths.leads_only_to_others,
            eligible=eligible,
        )


def _mixed_rows(build: Build, mixed: Bits) -> Iterator[UnsoundValues]:
    """Findings for the classes in `mixed`, whose destinations different neighbours serve."""
    yield from unsound_where(
        mixed,
        lambda s, c: Finding(
            (build.wiring.names[s], "class", c),
            "rows for what the same neighbours serve",
            "rows for what others serve, too",
        ),
    )


def _class_numbers(build: Build, paths: NeighbourPaths) -> Iterator[UnsoundValues]:
    """Classes that are direct by their number and not by their rows, or the other way round.

    Targets tell direct classes by their number: the second class with the same port is direct, and
    where packets are marked it has a number from K to 2K - 1, K being the links of a switch.
    """
    port, most_links = build.tables.classes.port, build.wiring.port.shape[1]
    by_port = np.argsort(port, axis=1, kind="stable")
    ranked = np.take_along_axis(port, by_port, axis=1)
    # By rank of the port: equal to the class before, and not to the one before that.
    is_second = np.zeros(port.shape, np.bool_)
    is_second[:, 1:] = ranked[:, 1:] == ranked[:, :-1]
    is_second[:, 2:] &= ranked[:, 2:] != ranked[:, :-2]
    direct_by_number = np.zeros(port.shape, np.bool_)
    np.put_along_axis(direct_by_number, by_port, is_second, axis=1)
    if build.forwarding.marks:  # classes K to 2K - 1
        direct_by_number &= np.arange(port.shape[1]) // most_links == 1
    words = {True: "the neighbour alone", False: "what is behind the neighbour"}
    yield from unsound_where(
        (paths.leads_to_neighbour & ~direct_by_number) | (paths.leads_to_others & direct_by_number),
        lambda s, c: Finding(
            (build.wiring.names[s], "class", c),
            f"rows for {words[bool(direct_by_number[s, c])]}, by its number",
            f"rows for {words[not direct_by_number[s, c]]}",
        ),
    )


def _wrong_links(
    build: Build, port_use: PortUse, wrong: Sets, required: str, given: str
) -> Iterator[UnsoundValues]:
    """Findings for the links in `wrong`, which a class lacks or should not have as alternates.

    {} in `required` or `given` stands for the port of the link.
    """

    def finding(s: int, c: int, link: int) -> Finding:
        """The finding for a link of class c of a switch."""
        port = port_use.words(s, int(build.wiring.port[s, link]))
        path = (build.wiring.names[s], "alternate", c)
        return Finding(path, required.format(port), given.format(port))

    if wrong.any():
        count = build.wiring.port.shape[1]
        yield from unsound_where(np.unpackbits(wrong, axis=2, count=count) > 0, finding)


def _repairs(
    build: Build, port_use: PortUse, key: str, order: Ports, is_checked: Bits, eligible: Sets
) -> Iterator[UnsoundValues]:
    """Classes whose order of ports for fast reroute does not begin with ports that repair.

    Args:
        build: its names are in the findings.
        port_use: the use of its ports.
        key: the name of the order, `protection` or `bounce`.
        order: int[S, C, n], its ports.
        is_checked: bool[S, C], the classes that are checked.
        eligible: uint8[S, C, ⌈K/8⌉], the links that repair. All of them come first in the order, or
            n of them if it has room for n.
    """
    does_repair = contain(eligible, port_use.links(order))
    must_repair = np.arange(order.shape[2]) < count_set_bits(eligible)[..., None]
    yield from unsound_where(
        is_checked[..., None] & must_repair & ~does_repair,
        lambda s, c, n: Finding(
            (build.wiring.names[s], key, c, n),
            "a port whose neighbour repairs the class",
            port_use.words(s, int(order[s, c, n])),
        ),
    )
