"""Prometheus metrics of a fabric: series of its state, and histograms of its times.

`controller.management.http_api` collects them (`collect`), and passes events (`happened`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from time import time
from typing import Any

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from compilers.tables.build import Build
from controller.state import Overview, State, dead_links, in_words
from controller.switches.connections.tls_files import TlsFiles
from controller.switches.events import KINDS, Event, SwitchProgrammed, TablesRepaired, TokenRefused
from controller.upkeep.port_counters import PortCounters

MOST_PORTS = 5000
"""Ports that have series of their own; in a larger fabric each switch has the sums of its ports."""
FIRST_RESERVED_PORT = 0xFFFFFF00
"""The first port number that is no port of a switch."""
DAY = 86400.0
"""The seconds of a day."""
Sample = tuple[Sequence[str], float]
"""The values of a series' labels, and the value of the series."""
BUCKET_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
"""The upper bounds of the buckets of histograms of times."""


class Metrics(Collector):
    """The metrics, in a registry of their own without the process's metrics.

    Attributes:
        http: how many requests failed (`errors`), and how often the process that serves HTTP was
            started again (`restarts`).
    """

    def __init__(
        self,
        overview: Overview,
        counters: PortCounters | None = None,
        tls: TlsFiles | None = None,
    ) -> None:
        self.overview, self.counters, self.tls = overview, counters, tls
        self.http: Counter[str] = Counter()
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)
        self._sync_seconds = Histogram(
            "polarfab_sync_seconds",
            "From a switch's connection until it holds its program.",
            buckets=BUCKET_SECONDS,
            registry=self.registry,
        )
        self._repair_seconds = Histogram(
            "polarfab_repair_seconds",
            "From when a failure is noticed until the switches hold the tables around it.",
            buckets=BUCKET_SECONDS,
            registry=self.registry,
        )

    def happened(self, event: Event) -> None:
        """Add the seconds of a programmed switch, or of a repair, to their histogram."""
        if event.type is TablesRepaired:
            self._repair_seconds.observe(event.seconds)
        if event.type is SwitchProgrammed and event.seconds is not None:
            self._sync_seconds.observe(event.seconds)

    def collect(self) -> Iterator[Metric]:
        """All metrics as of now."""
        state = self.overview.current_state()
        health = self.overview.health(state)
        yield _gauge(
            "build_info",
            "Always 1. The label has the identity of the current build.",
            [([health["build"]], 1)],
            "build",
        )
        yield from _health_gauges(health)
        corrected = [([correction], count) for correction, count in state.differences.items()]
        yield _counter(
            "reconciled",
            "Rows and groups added, changed or removed. none: readings without a difference.",
            corrected,
            "what",
        )
        yield from self._fault_counters(state, health)
        # All kinds from the start: Prometheus sees no increase in a series that begins with 1.
        events = dict.fromkeys((kind.name for kind in KINDS), 0) | self.overview.counts
        kinds = [([kind], count) for kind, count in sorted(events.items())]
        yield _counter("events", "Events by kind.", kinds, "event")
        yield from _switch_and_link_gauges(state)
        yield from self._ports(state.build)
        if self.tls:
            yield from _certificate_gauges(self.tls)

    def _fault_counters(self, state: State, health: Mapping[str, Any]) -> Iterator[Metric]:
        """Failed steps, peers that were turned away, and faults of the API."""
        for name, description, value in (
            ("bugs", "Steps of the controller that failed.", health["bugs"]),
            ("rejected_peers", "Peers that were turned away.", health["rejected_peers"]),
            ("wrong_tokens", "Wrong tokens.", state.rejected[TokenRefused.name]),
            ("http_errors", "Internal errors in answering requests.", self.http["errors"]),
            ("http_restarts", "Starts of the HTTP process after the first.", self.http["restarts"]),
        ):
            yield _counter(name, description, [((), value)])

    def _ports(self, build: Build) -> Iterator[Metric]:
        """Bytes, errors and drops: of each port, or in a large fabric of each switch."""
        if self.counters is None:
            return
        wiring = build.wiring
        # By vertex, the columns of a switch: its ports, and their counters.
        columns_of = {
            vertex: columns
            for vertex, columns in self.counters.by_vertex.items()
            if vertex < len(wiring.names)
        }
        all_ports = sum(len(columns["port"]) for columns in columns_of.values())
        has_series_by_port = all_ports <= MOST_PORTS

        def series(counter: str) -> Iterator[Sample]:
            """The series of a counter: of each port, or of each switch with an empty port."""
            for vertex, columns in sorted(columns_of.items(), key=itemgetter(0)):
                name = wiring.names[vertex]
                port_names = wiring.port_names[int(wiring.node_type[vertex])]
                if not has_series_by_port:
                    yield [name, ""], int(columns[counter].sum())
                    continue
                ports, counts = columns["port"].tolist(), columns[counter].tolist()
                for port, count in zip(ports, counts, strict=True):
                    # A switch may have more ports than its type.
                    has_name = port <= len(port_names)
                    if port < FIRST_RESERVED_PORT:
                        yield [name, port_names[port - 1] if has_name else str(port)], count

        for name, description in (
            ("port_received_bytes", "Bytes received by a port."),
            ("port_sent_bytes", "Bytes sent by a port."),
            ("port_errors", "Errors of a port."),
            ("port_drops", "Packets that a port has dropped."),
        ):
            yield _counter(name, description, series(name.removeprefix("port_")), "switch", "port")


def _health_gauges(health: Mapping[str, Any]) -> Iterator[Metric]:
    """The numbers of `Overview.health` that are gauges without labels."""
    for name, description, value in (
        ("switches", "Switches of the build.", health["switches"]),
        ("switches_connected", "Switches with a session.", health["connected"]),
        ("switches_in_sync", "Switches that hold their program.", health["in_sync"]),
        ("switches_in_error", "Switches that refuse or report errors.", health["errors"]),
        (
            "switches_shadowed",
            "Switches where foreign rows take packets from polarfab's.",
            health["shadowed"],
        ),
        ("oldest_audit_seconds", "Age of the oldest audit.", health["oldest_audit"] or 0.0),
        ("alive", "1 while the loop that repairs and reports runs.", health["alive"]),
        ("leader", "1 where this controller leads.", health["role"] == "leader"),
        ("links_dead", "Links that traffic is routed around.", health["dead_links"]),
        ("links_doubtful", "Silent links that stay in use.", health["doubtful_links"]),
        ("trial", "1 while a build waits to be confirmed.", bool(health["trial_until"])),
        (
            "move_waits",
            "1 while a move waits for the disk, the store or a switch.",
            bool(health["move_waits_for"]),
        ),
        (
            "change_waits",
            "1 while a change of tables waits for switches that could not follow it, as they are "
            "disconnected or not read yet.",
            bool(health["change_waits_for"]),
        ),
    ):
        yield _gauge(name, description, [((), value)])


def _certificate_gauges(tls: TlsFiles) -> Iterator[Metric]:
    """When certificates, their authority and the revocation list expire."""
    days_of_file = [([file], _days_until(expiry)) for file, expiry in tls.expires.items()]
    yield _gauge(
        "certificate_days",
        "Days until the controller's certificate, its authority or revocation list expires.",
        days_of_file,
        "file",
    )
    days_of_switch = [([node], _days_until(expiry)) for node, expiry in tls.peers.items()]
    yield _gauge(
        "switch_certificate_days",
        "Days until the certificate of a connected switch expires.",
        days_of_switch,
        "switch",
    )


def _days_until(moment: float) -> float:
    """The days from now until a moment in seconds since the epoch."""
    return (moment - time()) / DAY


def _switch_and_link_gauges(state: State) -> Iterator[Metric]:
    """The states of switches and the dead links: a series for each, with their names as labels."""
    switches = state.switches
    states = [([switch.name, in_words(switch.state)], 1) for switch in switches]
    yield _gauge(
        "switch_state", "Always 1. A label has the state of the switch.", states, "switch", "state"
    )
    drained = [([switch.name], 1) for switch in switches if switch.drained]
    yield _gauge("switch_drained", "1 where traffic goes around a switch.", drained, "switch")
    rows = [
        ([switch.name, entry], count)
        for switch in switches
        if switch.holds is not None  # it was read
        for entry, count in zip(("rows", "groups"), switch.holds, strict=True)
    ]
    yield _gauge(
        "switch_rows", "Rows, or groups, of a switch when it was read last.", rows, "switch", "what"
    )
    dead = [([*link.values()], 1) for link in dead_links(state)]
    yield _gauge(
        "link_dead",
        "1 for a link that traffic goes around.",
        dead,
        "switch",
        "port",
        "far_switch",
        "far_port",
    )


def _family(
    family: Any, name: str, description: str, samples: Iterable[Sample], *labels: str
) -> Metric:
    """A metric of the client library.

    Args:
        family: the library's class of the metric: a gauge or a counter.
        name: the metric's name without the prefix.
        description: its help text.
        samples: its series.
        labels: the names of the labels of every series.
    """
    metric: Any = family(f"polarfab_{name}", description, labels=labels)
    for label_values, value in samples:
        metric.add_metric(label_values, value)
    result: Metric = metric
    return result


_gauge, _counter = partial(_family, GaugeMetricFamily), partial(_family, CounterMetricFamily)
