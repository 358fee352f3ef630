"""Checks of observations against the prediction from the tables, with a mismatch for each fault.

A rehearsal and its timeline make an `Examiner` for the build that the fabric holds, and pass it
what the engine has observed. Its `table_checks` compare with the prediction from the tables; its
`expectation_checks` compare with what the scenario expects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from compilers.proof.name_lookup import find_switch
from compilers.tables.fib import FAULTS
from compilers.topology.distance import distances, neighbour_table
from inventory.problems import InputError
from mininet_scenarios.scenario.check import Check, Mismatch
from mininet_scenarios.scenario.engine import Engine, HostSample
from mininet_scenarios.scenario.observations import SILENT, Counts, Observation
from mininet_scenarios.scenario.scenario_file import Expect, ExpectAtTop
from mininet_scenarios.verdict.predict import Prediction, Value


class Examiner:
    """Compares observations of a build's hosts with the prediction from its tables."""

    def __init__(self, prediction: Prediction, hosts: HostSample) -> None:
        self.build, self.hosts, self.prediction = prediction.build, hosts, prediction
        self.fewest_hops = self._of_hosts(prediction.fewest_hops)
        """int64[H, H], the fewest links between two hosts; negative if packets may be lost."""
        self.most_hops = self._of_hosts(prediction.most_hops)
        """int64[H, H], the most links between two hosts; negative if all packets are lost."""

    def table_checks(
        self, name: str, counts: Counts, observation: Observation, compares_links: bool = True
    ) -> list[Check]:
        """The checks of the packets, hops and links of a round against the prediction.

        Args:
            name: of the round, in the names of checks.
            counts: int64[H, H], the packets that were sent.
            observation: the packets that arrived, and the loads of links.
            compares_links: whether the loads of links are compared, too.
        """
        checks = [
            self._arrival_check(f"{name}: arrived", counts, observation),
            self._hop_check(f"{name}: hops as predicted", counts, observation),
        ]
        if compares_links:
            checks.append(
                self._link_check(f"{name}: link counters as predicted", counts, observation)
            )
        return checks

    def default_expectations(self) -> ExpectAtTop:
        """The expectations of a fabric without failures, where a scenario sets no other ones."""
        most = int(self.most_hops.max()) if self.prediction.varies else self.build.topology.diameter
        return ExpectAtTop.model_construct(
            delivered=len(self.hosts) * (len(self.hosts) - 1),
            max_hops=most,
            minimal=not self.build.forwarding.several_paths,
        )

    def expectation_checks(
        self,
        name: str,
        expect: Expect,
        sent: NDArray[np.bool_],
        longest: NDArray[np.int64],
        engine: Engine,
    ) -> list[Check]:
        """The checks of a round against expectations, of the scenario or by default.

        Args:
            name: of the round, in the names of checks.
            expect: the expectations.
            sent: bool[H, H], the pairs that packets were sent between.
            longest: int64[H, H], the most links that a packet crossed; SILENT where none arrived.
            engine: has the paths of packets.
        """
        checks: list[Check] = []
        if expect.delivered is not None:
            checks.append(
                self._delivery_check(f"{name}: delivered", expect.delivered, sent, longest)
            )
        if expect.max_hops is not None:
            most = np.full_like(self.most_hops, expect.max_hops)
            checks.append(
                self.hop_limit_check(f"{name}: at most {expect.max_hops} hops", most, longest)
            )
        if expect.minimal:
            graph = self.build.topology.graph
            shortest = distances(neighbour_table(graph), np.arange(graph.order)).T
            checks.append(
                self.hop_limit_check(f"{name}: shortest paths", self._of_hosts(shortest), longest)
            )
        if expect.paths:
            checks.append(self.path_check(name, expect.paths, engine))
        return checks

    def path_check(self, name: str, paths: Sequence[Sequence[str]], engine: Engine) -> Check:
        """The check that packets pass the nodes which a scenario names.

        Args:
            name: of the round, in the name of the check.
            paths: the names of the nodes of each path.
            engine: tells the paths of packets.

        Raises:
            InputError: a node of that name is not there, or has no host that takes part.
        """
        names = self.build.wiring.names
        routes = [tuple(find_switch(self.build, node) for node in path) for path in paths]
        first_host: dict[int, int] = {}  # by switch
        for host, switch in enumerate(self.hosts.switch.tolist()):
            first_host.setdefault(switch, host)
        for route in routes:
            for end in (route[0], route[-1]):
                if end not in first_host:
                    required = "paths between nodes with hosts that take part"
                    raise InputError.of(required, names[end], key="expect.paths")
        pairs = np.array([(first_host[route[0]], first_host[route[-1]]) for route in routes])
        mismatches = []
        for route, passed in zip(routes, engine.paths(self.hosts.pairs(pairs)), strict=True):
            expected = tuple(names[v] for v in route)
            if passed != expected:
                pair = f"{expected[0]} → {expected[-1]}"
                mismatches.append(Mismatch(pair, " ".join(expected), " ".join(passed)))
        return Check.of(f"{name}: paths", len(routes), tuple(mismatches))

    def _delivery_check(
        self, name: str, expected: int, sent: NDArray[np.bool_], longest: NDArray[np.int64]
    ) -> Check:
        """The check that so many pairs were delivered.

        If it fails, there is a mismatch for each pair that was lost, with what the tables do to it.
        """
        lost = sent & (longest == SILENT)
        delivered = int(np.count_nonzero(sent & ~lost))
        if delivered == expected:
            return Check(name, expected, delivered)
        faults = [
            FAULTS.get(hops, "the tables deliver it") for hops in self.fewest_hops[lost].tolist()
        ]
        seen = [f"lost ({fault})" for fault in faults]
        mismatches = self._pair_mismatches(lost, ["delivered"] * len(seen), seen)
        return Check(name, expected, delivered, mismatches)

    def _arrival_check(self, name: str, counts: Counts, observation: Observation) -> Check:
        """The check that packets arrived which the tables deliver, and no others.

        Pairs whose packets arrive by some of their paths only are not checked.
        """
        # bool[H, H]: pairs whose packets arrive over all of their paths, and over none.
        always_arrives, never_arrives = self.fewest_hops >= 0, self.most_hops < 0
        is_checked = (counts > 0) & (always_arrives | never_arrives)
        expected, arrived = np.where(always_arrives, counts, 0), observation.arrived
        wrong = is_checked & (arrived != expected)
        mismatches = self._pair_mismatches(
            wrong, _packets_in_words(expected[wrong]), _packets_in_words(arrived[wrong])
        )
        return Check.of(name, int(np.count_nonzero(is_checked)), mismatches)

    def _hop_check(self, name: str, counts: Counts, observation: Observation) -> Check:
        """The check that packets that arrived crossed as many links as the tables allow."""
        shortest, longest = observation.shortest, observation.longest
        arrived = (counts > 0) & (longest != SILENT)
        is_as_predicted = (shortest >= self.fewest_hops) & (longest <= self.most_hops)
        wrong = arrived & ~is_as_predicted
        expected = _hops_in_words(self.fewest_hops[wrong], self.most_hops[wrong])
        mismatches = self._pair_mismatches(wrong, expected, _hops_in_words(longest[wrong]))
        return Check.of(name, int(np.count_nonzero(arrived)), mismatches)

    def _link_check(self, name: str, counts: Counts, observation: Observation) -> Check:
        """The check that every link carried as many packets as the tables allow."""
        wiring = self.build.wiring
        packets = self.hosts.by_switch(counts, len(wiring.names))
        bounds = self.prediction.load_bounds(packets)
        switch, link = np.nonzero(wiring.far >= 0)
        port, loads = wiring.port[switch, link], self.of_links(observation.loads)
        fewest, most = bounds.fewest[switch, port], bounds.most[switch, port]
        mismatches = tuple(
            Mismatch(
                self._link_in_words(int(switch[i]), int(link[i])),
                f"{_range_in_words(int(fewest[i]), int(most[i]))} packets",
                str(loads[i]),
            )
            for i in np.flatnonzero((loads < fewest) | (loads > most))
        )
        return Check.of(name, len(port), mismatches)

    def of_links(self, loads: Mapping[str, NDArray[Value]]) -> NDArray[Value]:
        """[E], the load of each link in each direction, from the loads of switches' ports.

        Args:
            loads: by the name of a switch, [ports + 1], the load of each of its ports. A switch
                that is missing has no load.
        """
        wiring, no_load = self.build.wiring, np.zeros_like(next(iter(loads.values())))
        ports = np.stack([loads.get(name, no_load) for name in wiring.names])
        switch, link = np.nonzero(wiring.far >= 0)
        return ports[switch, wiring.port[switch, link]]

    def hop_limit_check(
        self, name: str, most: NDArray[np.int64], longest: NDArray[np.int64]
    ) -> Check:
        """The check that paths have at most so many links.

        Args:
            name: of the check.
            most: int64[H, H], the most links that are allowed.
            longest: int64[H, H], the most links that a packet crossed; SILENT where none arrived.
        """
        arrived = longest != SILENT
        too_long = arrived & (longest > most)
        expected = _hops_in_words(most[too_long])
        mismatches = self._pair_mismatches(too_long, expected, _hops_in_words(longest[too_long]))
        return Check.of(name, int(np.count_nonzero(arrived)), mismatches)

    def _of_hosts(self, of_switches: NDArray[np.integer]) -> NDArray[np.int64]:
        """int64[H, H] from a value for each pair of switches."""
        switch = self.hosts.switch
        return of_switches[switch[:, None], switch].astype(np.int64)

    def _pair_mismatches(
        self, where: NDArray[np.bool_], expected: Iterable[str], seen: Iterable[str]
    ) -> tuple[Mismatch, ...]:
        """The mismatches of pairs of hosts.

        Args:
            where: bool[H, H], n pairs that are true.
            expected: n expectations in words.
            seen: n observations in words.
        """
        names, pairs = self.hosts.names, np.argwhere(where).tolist()
        return tuple(
            Mismatch(f"{names[i]} → {names[j]}", expected_words, seen_words)
            for (i, j), expected_words, seen_words in zip(pairs, expected, seen, strict=True)
        )

    def _link_in_words(self, switch: int, link: int) -> str:
        """A link by its switches and ports, in words."""
        wiring = self.build.wiring
        far = int(wiring.far[switch, link])
        port_name = wiring.port_name(switch, int(wiring.port[switch, link]))
        far_port_name = wiring.port_name(far, int(wiring.far_port[switch, link]))
        return f"link {wiring.names[switch]} {port_name} → {wiring.names[far]} {far_port_name}"


def histogram(hops: NDArray[np.int64], pairs: NDArray[np.bool_]) -> dict[int, int]:
    """By number of hops, how many of the pairs take it; pairs that do not arrive are left out."""
    values, counts = np.unique(hops[pairs & (hops >= 0)], return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _packets_in_words(counts: NDArray[np.int64]) -> list[str]:
    """Counts of packets in words."""
    return ["1 packet" if n == 1 else f"{n} packets" for n in counts.tolist()]


def _hops_in_words(fewest: NDArray[np.int64], most: NDArray[np.int64] | None = None) -> list[str]:
    """Numbers of hops in words, or their bounds if these differ; negative numbers are faults.

    Args:
        fewest: the hops, or their lower bounds.
        most: the upper bounds; None if they are the same.
    """
    limits = fewest if most is None else most
    return [
        FAULTS.get(least, f"{_range_in_words(least, limit)} {'hop' if limit == 1 else 'hops'}")
        for least, limit in zip(fewest.tolist(), limits.tolist(), strict=True)
    ]


def _range_in_words(least: int, most: int) -> str:
    """A number between two bounds in words, such as `3`, or `3 to 5`."""
    return f"{least}" if least == most else f"{least} to {most}"
