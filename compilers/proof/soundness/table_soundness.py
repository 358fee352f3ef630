"""Check the tables of a build: prefixes, rows, and the ports and weights of classes.

Each function looks at one kind of values, and yields wrong values as `UnsoundValues`. It checks,
for example, that rows name classes that exist, or that no port occurs twice in a class. No packets
are followed, and `Forwarding` is not looked at (`forwarding_soundness` does so). `build_soundness`
calls the functions.

In the findings, g is a group of switches with the same prefixes, r a row, s a switch, c a class of
it, and n an index in a list of ports. What a finding is about comes first, then what is required,
then what the build has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.link_sets import contain, packed_alternates
from compilers.proof.soundness.port_use import FABRIC, Ports, PortUse
from compilers.proof.soundness.unsound import UnsoundValues, repeated, unsound_where
from compilers.tables.build import Build
from compilers.tables.computed_array import blocks_of
from compilers.tables.intermediate_form import local, no_route
from compilers.tables.packed_alternates import (
    AlternateLinks,
    AlternatePorts,
    AlternateWeights,
    count_set_bits,
)
from compilers.tables.star_rows import StarPrefixes
from inventory.problems import Finding


def check_prefixes(build: Build) -> Iterator[UnsoundValues]:
    """Prefix numbers that do not ascend or do not exist, and aggregates of other supernodes.

    The prefix of a switch has the number of the switch. The numbers of aggregates, one for each
    supernode, follow after these.
    """
    prefix, switches = build.tables.routes.prefix, build.tables.switches
    # A whole PolarStar stores the neighbouring supernodes of each one (`around`), from which its
    # prefixes are computed. A quadric supernode is its own neighbour.
    if isinstance(prefix, StarPrefixes) and (np.diff(prefix.packed.around, axis=1) <= 0).any():
        yield UnsoundValues.one(
            "routes.prefix", "neighbouring supernodes of each, in ascending order", "others"
        )
        return
    yield from _disordered_prefixes(build)
    yield from _foreign_aggregates(build)
    if len(prefix) == 0 or switches % len(prefix):
        yield UnsoundValues.one("routes.prefix", f"sets that divide {switches}", f"{len(prefix)}")


def _disordered_prefixes(build: Build) -> Iterator[UnsoundValues]:
    """Prefix numbers that do not ascend or do not exist."""
    prefix = build.tables.routes.prefix
    end = build.tables.switches + _count_aggregates(build)  # the first number that is no prefix
    # Groups of switches that have fewer prefixes than others are filled up with `end`.
    for first, rows in blocks_of(prefix):
        wrong = (rows < 0) | (rows > end)
        # A number is wrong that does not ascend, unless it fills up.
        wrong[:, 1:] |= (rows[:, 1:] <= rows[:, :-1]) & (rows[:, 1:] < end)
        yield from unsound_where(
            wrong,
            lambda g, r: Finding(
                ("routes", "prefix", g, r),
                f"ascending numbers below {end}",
                f"{prefix[g, r]}",
            ),
            first,
        )


def _foreign_aggregates(build: Build) -> Iterator[UnsoundValues]:
    """Aggregates of switches that are not those of their own supernodes."""
    aggregate, supernode_size = build.tables.routes.aggregate, build.topology.hierarchy
    switches = build.tables.switches
    # int64[S], the number of the aggregate of each switch's supernode.
    own_aggregate = switches + np.arange(switches) // supernode_size
    is_own = (aggregate == own_aggregate) & (supernode_size > 1)
    yield from unsound_where(
        (aggregate != -1) & ~is_own,
        lambda s: Finding(
            (build.wiring.names[s], "aggregate"),
            f"{own_aggregate[s]}, or -1" if supernode_size > 1 else "-1",
            f"{aggregate[s]}",
        ),
    )


def _count_aggregates(build: Build) -> int:
    """How many aggregate prefixes there are: one for each supernode."""
    supernode_size = build.topology.hierarchy
    return build.tables.switches // supernode_size if supernode_size > 1 else 0


def check_rows(build: Build) -> Iterator[UnsoundValues]:
    """Rows that name no class, lead to no switch, or deliver at a wrong switch."""
    routes, port = build.tables.routes, build.tables.classes.port
    egress, switches = routes.egress, len(routes.egress)
    delivery, missing = local(egress), no_route(egress)
    # bool[S, values], the values that a row of another switch's prefix may have: the classes with a
    # port, and no route. The largest value is delivery, which only the own prefix may have.
    allowed = np.zeros((switches, delivery + 1), np.bool_)
    class_count = min(port.shape[1], missing)
    allowed[:, :class_count] = port[:, :class_count] > 0
    allowed[:, missing] = True
    # bool[prefixes + 1], the prefixes with hosts. The last number is no prefix: it fills up.
    is_aggregate = np.ones(_count_aggregates(build), np.bool_)
    with_hosts = np.concatenate((build.topology.endpoints, is_aggregate, [False]))
    numbered_rows = enumerate(egress)  # one iterator for all groups: rows are computed in blocks
    for prefix in routes.prefix:  # of a group, the next switches in order
        has_hosts = with_hosts[np.minimum(prefix, len(with_hosts) - 1)]
        for s, row in islice(numbered_rows, routes.group_size):
            is_own = has_hosts & (prefix == s)
            wrong = ~allowed[s].take(row)
            wrong |= ~has_hosts & (row != missing)  # no route may lead where no hosts are
            wrong[is_own] = row[is_own] != delivery
            if wrong.any():
                switch = _SwitchRows(build.wiring.names[s], prefix, is_own, has_hosts, row)
                yield from unsound_where(wrong, switch.wrong_row)


@dataclass(frozen=True, slots=True, eq=False)
class _SwitchRows:
    """The R rows of a switch, some of which are wrong."""

    name: str
    """The name of the switch."""
    prefix: NDArray[np.int32]
    """int32[R], the prefix of each row."""
    is_own: NDArray[np.bool_]
    """bool[R], whether it is the switch's own prefix, which it has to deliver."""
    has_hosts: NDArray[np.bool_]
    """bool[R], whether there are hosts under the prefix; otherwise no route may lead there."""
    egress: NDArray[Any]
    """int[R], of `Routes.egress`."""

    def wrong_row(self, r: int) -> Finding:
        """The finding for row r."""
        required = "a class that is there, or no route"
        if self.is_own[r]:
            required = "delivery here"
        elif not self.has_hosts[r]:
            required = "no route to a node without hosts"
        egress = int(self.egress[r])
        words = {local(self.egress): "delivery here", no_route(self.egress): "no route"}
        path = (self.name, "route to", int(self.prefix[r]))
        return Finding(path, required, words.get(egress, f"class {egress}"))


def check_classes(build: Build, port_use: PortUse) -> Iterator[UnsoundValues]:
    """Ports of classes that are no fabric ports, or that occur twice in a class.

    These are the minimal port, the alternates, and the ports of `protection` and `bounce`.
    """
    tables = build.tables.classes
    minimal = tables.port
    yield from _ports_without_cable(
        build, port_use, "class", minimal[..., None], (minimal != 0)[..., None]
    )
    packed = packed_alternates(build, port_use)
    # Packed alternates are fabric ports, and none occurs twice, so they are sound if the minimal
    # port is not among them.
    alternates_sound = (
        packed and not contain(packed.links, port_use.links(minimal)[..., None]).any()
    )
    port_lists = ["protection", "bounce"]
    if not alternates_sound:
        port_lists.insert(0, "alternate")
    for key in port_lists:
        ports = np.asarray(getattr(tables, key))
        # Only after the last port may there be 0.
        before_last = np.logical_or.accumulate(ports[..., ::-1] != 0, axis=2)[..., ::-1]
        yield from _ports_without_cable(build, port_use, key, ports, before_last)
        yield from unsound_where(
            _occurs_before(minimal, ports),
            lambda s, c, n, key=key, ports=ports: Finding(
                (build.wiring.names[s], key, c, n),
                "a port that the class does not use before",
                port_use.words(s, int(ports[s, c, n])),
            ),
        )


def _occurs_before(minimal: NDArray[np.int32], ports: Ports) -> NDArray[np.bool_]:
    """Whether ports are the minimal port of their class, or occur earlier in the same list.

    Args:
        minimal: int32[S, C].
        ports: int[S, C, n], a list of ports for each class; 0 is none.

    Returns:
        bool[S, C, n].
    """
    occurs_before: NDArray[np.bool_] = (ports == minimal[..., None]) & (ports != 0)
    before, after = ports[..., :-1], ports[..., 1:]
    # Where ports ascend, none occurs twice. Only lists that do not ascend are sorted to find out.
    unordered = np.argwhere(((after != 0) & ((after <= before) | (before == 0))).any(axis=2))
    ranked = np.sort(ports[tuple(unordered.T)], axis=1)
    twice = ((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] != 0)).any(axis=1)
    for s, c in unordered[twice].tolist():
        port_list = ports[s, c]
        occurs_before[s, c] |= repeated(port_list) & (port_list != 0)
    return occurs_before


def _ports_without_cable(
    build: Build, port_use: PortUse, key: str, ports: Ports, required: NDArray[np.bool_]
) -> Iterator[UnsoundValues]:
    """Yield the ports that are no fabric ports with a cable, although the class needs them.

    Args:
        build: its names are in the findings.
        port_use: the use of its ports.
        key: the name of the list of ports.
        ports: int[S, C, n].
        required: bool[S, C, n], where there has to be a port.
    """
    yield from unsound_where(
        required & (port_use.purposes(ports) != FABRIC),
        lambda s, c, n: Finding(
            (build.wiring.names[s], key, c, *([n] if ports.shape[2] > 1 else [])),
            "a fabric port with a cable",
            port_use.words(s, int(ports[s, c, n])),
        ),
    )


def check_weights(build: Build) -> Iterator[UnsoundValues]:
    """Classes with a weight that has no port, or without any weight."""
    classes = build.tables.classes
    ports, weights = classes.alternate, classes.weight
    if isinstance(ports, AlternatePorts) and isinstance(weights, AlternateWeights):
        good = _packed_weights(ports.packed, weights.packed, weights.shape[2] - 1)
    else:
        alternate, weight = np.asarray(ports), np.asarray(weights)
        portless = np.where(alternate == 0, weight[..., 1:], 0)
        good = (portless.max(axis=2, initial=0) == 0) & (weight.sum(axis=2, dtype=np.int64) > 0)

    def finding(s: int, c: int) -> Finding:
        """The finding for class c of a switch."""
        path = (build.wiring.names[s], "weight", c)
        required = "weights of ports that there are, one above 0"
        return Finding(path, required, " ".join(map(str, classes.weight[s, c].tolist())))

    yield from unsound_where(~good, finding)


def _packed_weights(
    ports: AlternateLinks, weights: AlternateLinks, most_alternates: int
) -> NDArray[np.bool_]:
    """Whether all alternates of a class have its weight, and the class has any weight.

    Args:
        ports: the alternates of each class, as sets of links.
        weights: the links that have the weight of alternates, as sets, with the weights.
        most_alternates: how many alternates have a place for their weight.

    Returns:
        bool[S, C].
    """
    # A link without a port is no alternate, as in the array of ports.
    has_port = np.packbits(ports.port > 0, axis=1)[:, None]
    alternate_count = count_set_bits(ports.links & has_port)
    weighted_count = np.minimum(count_set_bits(weights.links), most_alternates)
    minimal_weight = weights.weight[..., 0]
    alternate_weight = np.where(weighted_count > 0, weights.weight[..., 1], 0)
    # All alternates of a class share one weight. So if that is above 0, as many links as there are
    # alternates have to have it.
    all_weighted = (alternate_weight == 0) | (alternate_count == weighted_count)
    good: NDArray[np.bool_] = all_weighted & ((minimal_weight > 0) | (alternate_weight > 0))
    return good
