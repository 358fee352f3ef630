"""A reader of Junos's set commands, filter-based forwarding included."""

from __future__ import annotations

from dataclasses import dataclass, field

from compilers.readers.emitted_forwarding import Interface
from compilers.readers.grammar.engine import Engine, Place
from compilers.readers.grammar.rules import grammar
from compilers.readers.route_tables import RouteLines
from compilers.readers.routers.cli_sections import RouterActor, take
from compilers.readers.routers.router_text import DISCARD, RouterText
from compilers.readers.text_lines import TextLines

LAST = "preference 254"
"""What the line says that belongs to one that discards: without it that goes before all others."""
ETHERNET_HEADER = 14
"""Counted in the MTU of a port, not in that of IP."""


@dataclass(frozen=True, slots=True)
class JunosActor(RouterActor):
    """What the statements do; destinations: those that the filters look for, with their lines."""

    cages: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    destinations: dict[str, int] = field(default_factory=dict)

    def cage(self, place: Place, name: str, word: str, number: int) -> None:
        """The speed of the parts of a cage, or how many there are."""
        self.cages.setdefault(name, {})[word] = number, place.line

    def framed(self, place: Place, name: str, size: int) -> None:
        """The MTU of a port, or of the interface of hosts, with the Ethernet header."""
        port = (Interface(name),) if name else ()
        kind = "mtu" if name else "mtu of the hosts"
        self.router.fact(place.line, kind, *port, size - ETHERNET_HEADER)

    def unit(self, place: Place, name: str, unit: str, address: str) -> None:
        """An address of a logical interface."""
        interface = self.router.interface(_unit(name, unit), place.line)
        interface.addresses.append((address, place.line))

    def member(self, place: Place, name: str, vlan: str) -> None:
        """The VLAN of a port."""
        self.router.interface(name, place.line).vlan = vlan

    def shared(self, place: Place, vlan: str, name: str) -> None:  # noqa: ARG002
        """The interface that stands for the ports of a VLAN."""
        self.router.shared[vlan] = name

    def ingress(self, place: Place, family: str, name: str, unit: str) -> None:  # noqa: ARG002
        """The interface whose packets a filter looks at."""
        self.router.ingress[family] = _unit(name, unit)

    def destination(self, place: Place, prefix: str) -> None:
        """What a filter looks for."""
        self.destinations[prefix] = place.line


def _unit(name: str, unit: str) -> str:
    return name if unit == "0" else f"{name}.{unit}"


def read_junos(text: str, file: str) -> tuple[RouterText, Engine]:
    """The configuration of a Junos device."""
    router = RouterText(file)
    actor = JunosActor(router)
    engine = Engine(grammar("junos", "junos.set"), actor)
    engine.read(TextLines.of(text.encode()))
    router.told |= {"fec", "cage", *["syslog by management"] * ("managed" in engine.defined)}
    for name, said in actor.cages.items():
        (speed, first), (parts, last) = (said.get(w, (0, 0)) for w in ("speed", "parts"))
        router.fact(max(first, last), "cage", name, parts, speed)
    take(router, engine)
    router.transit = _discarded(router, router.transit)
    router.entering = _discarded(router, router.entering)
    if len({*router.ingress.values()}) > 1:
        router.fault(1, f"filters at {' and '.join(sorted(router.ingress.values()))}")
    ends = {prefix: line for prefix, _, line in router.entering.rows(DISCARD)}
    for prefix in ends.keys() ^ actor.destinations.keys():
        line = ends.get(prefix) or actor.destinations[prefix]
        router.fault(line, f"{prefix}, which is discarded or looked for, and not both")
    return router, engine


def _discarded(router: RouterText, rows: RouteLines) -> RouteLines:
    """The routes; one that discards has a preference of its own, or it would be before others."""
    last = {prefix: line for prefix, _, line in rows.rows(LAST)}
    ends = {prefix: line for prefix, _, line in rows.rows(DISCARD)}
    for prefix in last.keys() ^ ends.keys():
        line = last.get(prefix) or ends[prefix]
        router.fault(line, f"{prefix} with only one of discard and {LAST}")
    return rows.reworded({way: way for way in rows.ways if way != LAST})
