"""What the statements of routers do: the verbs of the grammars of EOS, NX-OS, Junos and others."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from socket import AF_INET6, inet_pton

from compilers.readers.emitted_forwarding import Interface
from compilers.readers.exact_text import exact_number, exact_words
from compilers.readers.expected_facts import port_text
from compilers.readers.grammar.text_engine import Place, TextEngine
from compilers.readers.route_tables import RouteLines
from compilers.readers.routers.router_forwarding import far_ends
from compilers.readers.routers.router_text import DISCARD, RouterText

TRANSIT, ENTERING, STAGE = "transit", "entering", "stage "
"""The tables of packets from anywhere, of those that come in in the VRF of hosts, and of marked
ones, in front of the name of their VRF."""
GROUP, ENDS, LAST = "group ", "discard", "last"
"""A route by a group of next hops; two lines of one route that discards, behind all others."""
INSIDE = " default"
"""The VRF of the next hops of a route in that of the hosts."""
ETHERNET_HEADER = 14
"""Counted in the MTU of some systems' ports, not in that of IP."""
TWO_TAGS = 8
SEGMENT_BLOCK = 4


@dataclass(frozen=True, slots=True)
class RouterActor:
    """The verbs of routers.

    cages: speed and number of the parts, with their lines. destinations: those that filters look
    for. groups: the next hop of each, DISCARD where it has none. frames: the MTU of IP by port;
    fitting: the same as the port's inner interface says it. commands: those of another language.
    staged: the VRF, prefix, next hop and line of routes for marked packets that are read one by
    one. tagged: ports whose frames have VLANs.
    """

    router: RouterText
    cages: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    destinations: dict[str, int] = field(default_factory=dict)
    groups: dict[str, tuple[str, int]] = field(default_factory=dict)
    frames: dict[str, int] = field(default_factory=dict)
    fitting: dict[str, tuple[int, int]] = field(default_factory=dict)
    commands_: list[tuple[int, str]] = field(default_factory=list)
    staged_: list[tuple[str, str, str, int]] = field(default_factory=list)
    tagged_: set[str] = field(default_factory=set)

    def wrong(self, line: int, text: str) -> None:
        """See `GrammarActor.wrong`."""
        self.router.fault(line, text)

    def unknown(self, line: int, text: str) -> None:
        """See `GrammarActor.unknown`."""
        self.router.unknown(line, text)

    def next_hop(self, place: Place, kind: str, *words: str) -> tuple[str, str] | None:  # noqa: ARG002
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
        """An interface."""
        self.router.interface(name, place.line)
        if name.startswith("Vlan"):
            self.router.shared[name.removeprefix("Vlan")] = name

    def described(self, place: Place, name: str, text: str) -> None:
        """The description of an interface."""
        self.router.described(place.line, name, text)

    def sized(self, place: Place, name: str, mtu: int) -> None:
        """The MTU of an interface."""
        self.router.sized(place.line, name, mtu)

    def frame(self, place: Place, name: str, size: int) -> None:
        """The MTU of a port, or of the interface of hosts, with the Ethernet header."""
        port = (Interface(name),) if name else ()
        size -= ETHERNET_HEADER + TWO_TAGS * (name in self.tagged_)
        self.frames[name] = size
        kind = "mtu" if name else "mtu of the hosts"
        self.router.fact(place.line, kind, *port, size)

    def tagged(self, place: Place, name: str) -> None:  # noqa: ARG002
        """A port whose frames may have two tags of VLANs, which the MTU of its frames counts."""
        self.tagged_.add(name)

    def fits(self, place: Place, name: str, size: int | str) -> None:
        """The MTU of what is in a port, which has to be that of its frame; 0: it says none."""
        self.fitting[name] = max(
            self.fitting.get(name, (0, 0)),
            (size if isinstance(size, int) else exact_number(size), place.line),
        )

    def cage(self, place: Place, name: str, word: str, number: int) -> None:
        """The speed of the parts of a cage, or how many there are."""
        self.cages.setdefault(name, {})[word] = number, place.line

    def address(self, place: Place, name: str, family: str, address: str) -> None:
        """An address of an interface, of a family or of either."""
        if family and (":" in address) != (family == "ipv6"):
            self.router.fault(place.line, place.text)
        self.router.interface(name, place.line).addresses.append((address, place.line))

    def unit(self, place: Place, name: str, unit: str, address: str) -> None:
        """An address of a logical interface."""
        self.address(place, _unit(name, unit), "", address)

    def unnumbered(self, place: Place, name: str) -> None:
        """A routed interface without addresses, or with that of the link alone."""
        self.router.interface(name, place.line).unnumbered = True

    def access(self, place: Place, name: str, vlan: str) -> None:
        """The VLAN of a port."""
        self.router.interface(name, place.line).vlan = vlan

    def member(self, place: Place, name: str, vrf: str) -> None:
        """The VRF of an interface."""
        self.router.interface(name, place.line).vrf = vrf

    def vlan(self, place: Place, vlan: str) -> None:  # noqa: ARG002
        """A VLAN that is there."""
        self.router.vlans.add(vlan)

    def shared(self, place: Place, vlan: str, name: str) -> None:  # noqa: ARG002
        """The interface for the ports of a VLAN."""
        self.router.shared[vlan] = name

    def vrf(self, place: Place, name: str) -> None:  # noqa: ARG002
        """The VRF of hosts is there."""
        self.router.vrf = name

    def stage(self, place: Place, name: str) -> None:  # noqa: ARG002
        """The VRF of what comes in marked by a link is there."""
        self.router.stages.setdefault(name, RouteLines())

    def staged(self, place: Place, vrf: str, prefix: str, *words: str) -> None:
        """A route of such a VRF."""
        self.staged_.append((vrf, prefix, " ".join(words), place.line))

    def within(self, place: Place, name: str, port: str, tag: str) -> None:
        """A subinterface: its port, and its VLAN, "" where another statement says it."""
        found = self.router.interface(name, place.line)
        found.port, found.tag = port, tag or found.tag

    def ingress(self, place: Place, family: str, name: str, unit: str) -> None:  # noqa: ARG002
        """The interface whose packets a filter looks at."""
        self.router.ingress[family] = _unit(name, unit)

    def looked(self, place: Place, family: str, name: str, instance: str) -> None:
        """The instance where packets of a family that come in at an interface are looked up."""
        self.router.interface(name, place.line).looked[family] = instance

    def wanted(self, place: Place, family: str, instance: str, network: str) -> None:  # noqa: ARG002
        """The destinations of those packets."""
        self.router.wanted[family, instance] = network

    def direct(self, place: Place, family: str, instance: str) -> None:  # noqa: ARG002
        """An instance that has the routes of all interfaces."""
        self.router.direct.add((family, instance))

    def destination(self, place: Place, prefix: str) -> None:
        """What a filter looks for."""
        self.destinations[prefix] = place.line

    def group(self, place: Place, name: str, gateway: str) -> None:
        """A group of one next hop, or of none."""
        if name in self.groups:
            self.router.fault(place.line, f"{place.text}, again")
        self.groups[name] = gateway, place.line

    def segments(self, place: Place, network: str) -> None:  # noqa: ARG002
        """The block of SRv6 uSIDs, whose routes are not looked at here."""
        self.router.segments = inet_pton(AF_INET6, network)[:SEGMENT_BLOCK]

    def commands(self, place: Place, text: str) -> None:
        """Commands of another language."""
        self.commands_.append((place.line, json.loads(f'"{text}"')))

    def finish(self, engine: TextEngine) -> None:
        """Give the router what only the whole text says, and its routes."""
        router = self.router
        for name, said in self.cages.items():
            (speed, first), (parts, last) = (said.get(w, (0, 0)) for w in ("speed", "parts"))
            router.fact(max(first, last), "cage", name, parts, speed)
        for name, (size, line) in self.fitting.items():
            if size != self.frames.get(name, 0):
                router.fault(line, f"{name} of {size} bytes, not {self.frames.get(name, 0)}")
        ends = dict(far_ends(router))
        for group, (gateway, line) in self.groups.items():
            if gateway not in ends and gateway != DISCARD:
                router.fault(line, f"{gateway} of group {group} is at the end of no link")
        for kind, rows in ((TRANSIT, router.transit), (ENTERING, router.entering)):
            rows.absorb(self._settled(engine.routes.get(kind, RouteLines()), kind))
        for vrf, prefix, hop, line in self.staged_:
            engine.routes.setdefault(f"{STAGE}{vrf}", RouteLines()).extend([prefix], [hop], [line])
        for vrf, rows in router.stages.items():
            kind = f"{STAGE}{vrf}"
            rows.absorb(self._settled(engine.routes.get(kind, RouteLines()), kind))
        router.part_back()
        if len({*router.ingress.values()}) > 1:
            router.fault(1, f"filters at {' and '.join(sorted(router.ingress.values()))}")
        if router.ingress or self.destinations:
            looked = {prefix: line for prefix, _, line in router.entering.rows(DISCARD)}
            for prefix in looked.keys() ^ self.destinations.keys():
                line = looked.get(prefix) or self.destinations[prefix]
                router.fault(line, f"{prefix}, which is discarded or looked for, and not both")
        router.strange.sort()

    def _settled(self, found: RouteLines, kind: str) -> RouteLines:
        """Routes with the next hops that they resolve to, a row each."""
        if ENDS in found.next_hops or LAST in found.next_hops:
            ends, last = ({p: line for p, _, line in found.rows(hop)} for hop in (ENDS, LAST))
            for prefix in ends.keys() ^ last.keys():
                line = ends.get(prefix) or last[prefix]
                self.router.fault(line, f"{prefix}, which is discarded, or behind others, alone")
        hops = {hop: self._hops(hop, INSIDE * (kind != TRANSIT)) for hop in found.next_hops}
        for prefix, hop, line in found.rows(*(hop for hop, some in hops.items() if some is None)):
            self.router.fault(line, f"{prefix} by {hop}")
        for prefix, hop, line in found.rows(*(w for w in found.next_hops if w.startswith(GROUP))):
            gateway = (hops[hop] or (DISCARD,))[0]
            if gateway != DISCARD and (":" in gateway) != (":" in prefix):
                self.router.fault(line, f"{prefix} by {gateway} of {hop}")
        rows = RouteLines()
        for step in range(max((len(some or ()) for some in hops.values()), default=0)):
            here = {hop: some[step] for hop, some in hops.items() if some and step < len(some)}
            rows.absorb(found.reworded(here))
        return rows

    def _hops(self, hop: str, vrf: str) -> tuple[str, ...] | None:
        """The next hops of a route, without the end that says their VRF; None: it is invalid."""
        if hop == LAST:
            return ()
        if hop == ENDS:
            return (DISCARD,)
        if hop.startswith(GROUP):
            _, group, *last = exact_words(hop)
            gateway = self.groups.get(group, (None, 0))[0]
            return None if gateway is None or (gateway == DISCARD) != bool(last) else (gateway,)
        columns = [column.split(",") for column in hop.split(" ")]
        if len(set(map(len, columns))) > 1:
            return None
        return tuple(" ".join(words).removesuffix(vrf) for words in zip(*columns, strict=True))


def _unit(name: str, unit: str) -> str:
    return name if unit == "0" else f"{name}.{unit}"
