"""Readers of configurations in sections: EOS, NX-OS, and the routes of FRR under SONiC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compilers.readers.expected_facts import port_text
from compilers.readers.grammar.engine import Engine, Place
from compilers.readers.grammar.rules import grammar
from compilers.readers.route_tables import RouteLines
from compilers.readers.routers.router_text import RouterText
from compilers.readers.text_lines import TextLines

TRANSIT, ENTERING = "transit", "entering"
"""The tables of packets from anywhere, and of those that come in in the VRF of hosts."""
CliReader = Callable[[str, str], tuple[RouterText, Engine]]
"""Reads a text with the name of its file."""


@dataclass(frozen=True, slots=True)
class RouterActor:
    """What the statements of a router do: the verbs of the grammars."""

    router: RouterText

    def wrong(self, line: int, text: str) -> None:
        """See `Actor.wrong`."""
        self.router.fault(line, text)

    def unknown(self, line: int, text: str) -> None:
        """See `Actor.unknown`."""
        self.router.unknown(line, text)

    def way(self, place: Place, kind: str, *words: str) -> tuple[str, str] | None:  # noqa: ARG002
        """A route: its table, and the next hop; without one it discards."""
        return kind, " ".join(words)

    def refuse(self, place: Place) -> None:
        """A statement that is known, and never right."""
        self.router.fault(place.line, place.text)

    def fact(self, place: Place, kind: str, *value: str | int) -> None:
        """A plain fact."""
        self.router.fact(place.line, kind, *value)

    def management(self, place: Place, port: str, address: str) -> None:
        """The address of the port of management."""
        self.router.fact(place.line, "management", port_text(port), address)

    def interface(self, place: Place, name: str) -> None:
        """The section of an interface."""
        self.router.interface(name, place.line)
        if name.startswith("Vlan"):
            self.router.shared[name.removeprefix("Vlan")] = name

    def described(self, place: Place, name: str, text: str) -> None:
        """The description of an interface."""
        self.router.described(place.line, name, text)

    def sized(self, place: Place, name: str, mtu: int) -> None:
        """The MTU of an interface."""
        self.router.sized(place.line, name, mtu)

    def address(self, place: Place, name: str, family: str, address: str) -> None:
        """An address of an interface."""
        if (":" in address) != (family == "ipv6"):
            self.router.fault(place.line, place.text)
        self.router.interfaces[name].addresses.append((address, place.line))

    def access(self, place: Place, name: str, vlan: str) -> None:  # noqa: ARG002
        """The VLAN of a port."""
        self.router.interfaces[name].vlan = vlan

    def member(self, place: Place, name: str, vrf: str) -> None:  # noqa: ARG002
        """The VRF of an interface."""
        self.router.interfaces[name].vrf = vrf

    def vlan(self, place: Place, vlan: str) -> None:  # noqa: ARG002
        """A VLAN that is there."""
        self.router.vlans.add(vlan)

    def vrf(self, place: Place, name: str) -> None:  # noqa: ARG002
        """The VRF of hosts is there."""
        self.router.vrf = name


def read_eos(text: str, file: str) -> tuple[RouterText, Engine]:
    """The configuration of an EOS device, whose ports are switched and which does not route."""
    router, engine = _read("eos", "eos.cfg", text, file)
    router.told |= {"fec", "speed and lanes"}
    return router, engine


def read_nxos(text: str, file: str) -> tuple[RouterText, Engine]:
    """The configuration of an NX-OS device, whose routed ports are down until `no shutdown`."""
    router, engine = _read("nxos", "nxos.cfg", text, file)
    router.told |= {"fec", "cage"}
    return router, engine


def read_frr_under_sonic(text: str, file: str) -> tuple[RouterText, Engine]:
    """The static routes of an frr.conf, which have bgpcfgd's tag; addresses are SONiC's."""
    router, engine = _read("sonic", "frr.conf", text, file)
    router.told = frozenset({"hostname"})
    return router, engine


def eos_commands(router: RouterText, lines: TextLines) -> None:
    """Read commands of EOS for what AVD has no key for: routes between VRFs."""
    engine = Engine(grammar("eos", "eos.cfg"), RouterActor(router), dict.fromkeys(_made(router), 0))
    engine.read(lines, whole=False)
    take(router, engine)


def _made(router: RouterText) -> list[str]:
    return [f"vrf {name}" for name in (router.vrf, "default") if name]


def _read(target: str, kind: str, text: str, file: str) -> tuple[RouterText, Engine]:
    router = RouterText(file)
    engine = Engine(grammar(target, kind), RouterActor(router))
    engine.read(TextLines.of(text.encode()))
    take(router, engine)
    return router, engine


def take(router: RouterText, engine: Engine) -> None:
    """Give the routes that were read to the router."""
    router.transit.absorb(engine.routes.get(TRANSIT, RouteLines()))
    router.entering.absorb(engine.routes.get(ENTERING, RouteLines()))
    router.part_back()
    router.strange.sort()
