"""Prometheus metrics of a fabric, computed at each request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import time

import numpy as np
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from compilers.tables.build import Build
from controller.management.overview import Overview, dead_links, in_words
from controller.management.tokens import Guesses
from controller.state import State
from controller.switches.connections.tls_files import TlsFiles
from controller.switches.events import Event, SwitchProgrammed, TablesRepaired
from controller.upkeep.port_counters import PortCounters

MOST_PORTS = 5000
"""Ports that have series of their own; in a larger fabric each switch has the sums of its ports."""
LOCAL, DAY = 0xFFFFFF00, 86400.0
"""The numbers of ports from which on they are no ports; seconds."""
SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)


class Metrics(Collector):
    """The metrics, in a registry of their own without the process's metrics."""

    def __init__(
        self,
        overview: Overview,
        guesses: Guesses | None = None,
        counters: PortCounters | None = None,
        tls: TlsFiles | None = None,
    ) -> None:
        self.overview, self.guesses, self.counters, self.tls = overview, guesses, counters, tls
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)
        self._push = Histogram(
            "polarfab_sync_seconds",
            "From a switch's connection until it holds its program.",
            buckets=SECONDS,
            registry=self.registry,
        )

        self._repair = Histogram(
            "polarfab_repair_seconds",
            "From a failure until all switches hold the tables around it.",
            buckets=SECONDS,
            registry=self.registry,
        )

    def happened(self, event: Event) -> None:
        """Measure the time that switches and repairs take."""
        if isinstance(event, TablesRepaired):
            self._repair.observe(event.seconds)
        if isinstance(event, SwitchProgrammed) and event.seconds is not None:
            self._push.observe(event.seconds)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """All metrics as of now."""
        state = self.overview.look()
        health = self.overview.health(state)
        yield _gauge("build_info", "1, with the identity of the current build.", 1, health["build"])
        for name, what, value in (
            ("switches", "Switches of the build.", health["switches"]),
            ("switches_connected", "Switches with a session.", health["connected"]),
            ("switches_in_sync", "Switches that hold their program.", health["in_sync"]),
            ("switches_in_error", "Switches that refuse or report errors.", health["errors"]),
            ("switches_shadowed", "Switches with rows of others over ours.", health["shadowed"]),
            ("oldest_audit_seconds", "Age of the oldest audit.", health["oldest_audit"] or 0.0),
            ("routes_in_sync", "Routes of the switches that hold their program.", _routes(state)),
            ("alive", "1 while the loop that repairs and reports runs.", health["alive"]),
            ("leader", "1 where this controller leads.", health["role"] == "leader"),
            ("links_dead", "Links that traffic is routed around.", health["dead_links"]),
            ("trial", "1 while a build waits to be confirmed.", bool(health["trial_until"])),
        ):
            yield _gauge(name, what, value)
        differences = CounterMetricFamily(
            "polarfab_reconciled", "Rows and groups corrected, by the correction.", labels=["what"]
        )
        for what, count in state.differences.items():
            differences.add_metric([what], count)
        yield differences
        guessed = self.guesses.total if self.guesses else 0
        for counter, count in (
            (_counter("bugs", "Steps of the controller that failed."), health["bugs"]),
            (_counter("rejected_peers", "Peers that were turned away."), health["rejected_peers"]),
            (_counter("wrong_tokens", "Wrong tokens."), guessed),
        ):
            counter.add_metric([], count)
            yield counter
        events = CounterMetricFamily("polarfab_events", "Events by kind.", labels=["event"])
        # All kinds from the start: Prometheus sees no increase in a series that begins with 1.
        for kind, count in sorted((dict.fromkeys(_kinds(Event), 0) | self.overview.counts).items()):
            events.add_metric([kind], count)
        yield events
        yield from _utilisation(state)
        yield from _named(state)
        yield from self._ports(state.build)
        if self.tls:
            family = GaugeMetricFamily(
                "polarfab_certificate_days", "Days for which a file is good.", labels=["file"]
            )
            for file, until in self.tls.expires.items():
                family.add_metric([file], (until - time()) / DAY)
            yield family

    def _ports(self, build: Build) -> Iterator[CounterMetricFamily]:
        """Bytes, errors and drops: of each port, or in a large fabric of each switch."""
        if self.counters is None:
            return
        wiring = build.wiring
        known = {v: one for v, one in self.counters.known.items() if v < len(wiring.names)}
        each = sum(len(one["port"]) for one in known.values()) <= MOST_PORTS
        named = ["switch", "port"]
        for what, family in (
            ("received_bytes", _counter("port_received_bytes", "Bytes received by a port.", named)),
            ("sent_bytes", _counter("port_sent_bytes", "Bytes sent by a port.", named)),
            ("errors", _counter("port_errors", "Errors of a port.", named)),
            ("drops", _counter("port_drops", "Packets that a port has dropped.", named)),
        ):
            for vertex in sorted(known):
                name, one = wiring.names[vertex], known[vertex]
                ports = wiring.port_names[int(wiring.node_type[vertex])]
                if each:
                    for port, count in zip(one["port"].tolist(), one[what].tolist(), strict=True):
                        if port < LOCAL:  # a switch may have more ports than its type
                            label = ports[port - 1] if port <= len(ports) else str(port)
                            family.add_metric([name, label], count)
                else:
                    family.add_metric([name, ""], int(one[what].sum()))
            yield family


def _named(state: State) -> Iterator[GaugeMetricFamily]:
    """What is amiss by name: at most a series for each switch, and one for each dead link."""
    kinds = GaugeMetricFamily(
        "polarfab_switch_state", "1, with a switch's state.", labels=["switch", "state"]
    )
    drained = GaugeMetricFamily(
        "polarfab_switch_drained", "1 where traffic goes around a switch.", labels=["switch"]
    )
    rows = GaugeMetricFamily(
        "polarfab_switch_rows", "Rows and groups read last.", labels=["switch", "what"]
    )
    dead = GaugeMetricFamily(
        "polarfab_link_dead",
        "1 for a link that traffic goes around.",
        labels=["switch", "port", "far_switch", "far_port"],
    )
    for one in state.switches:
        kinds.add_metric([one.name, in_words(one.state)], 1)
        if one.drained:
            drained.add_metric([one.name], 1)
        for what, count in zip(("rows", "groups"), one.holds or (), strict=False):
            rows.add_metric([one.name, what], count)
    for link in dead_links(state):
        dead.add_metric([link[end] for end in ("node", "port", "far_node", "far_port")], 1)
    yield from (kinds, drained, rows, dead)


def _routes(state: State) -> int:
    rows, there = state.build.tables.routes.rows(), {*state.in_sync}
    return int(rows[[name in there for name in state.build.wiring.names]].sum())


def _utilisation(state: State) -> Iterator[GaugeMetricFamily]:
    if state.load is None:
        return
    family = GaugeMetricFamily(
        "polarfab_port_utilisation", "Load of a port, 0 to 1.", labels=["node", "port"]
    )
    wiring = state.build.wiring
    for v, k in np.argwhere(wiring.far >= 0).tolist():
        port = wiring.port_name(v, int(wiring.port[v, k]))
        family.add_metric([wiring.names[v], port], float(state.load[v, k]))
    yield family


def _kinds(event: type[Event]) -> Iterator[str]:
    """The kinds of events."""
    for one in event.__subclasses__():
        if hasattr(one, "kind"):
            yield one.kind
        yield from _kinds(one)


def _counter(name: str, what: str, labels: Sequence[str] = ()) -> CounterMetricFamily:
    return CounterMetricFamily(f"polarfab_{name}", what, labels=labels)


def _gauge(name: str, what: str, value: float, build: str | None = None) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"polarfab_{name}", what, labels=["build"] if build else [])
    family.add_metric([build] if build else [], value)
    return family
