"""The forwarding rule in plain Python, a packet at a time, over every choice that it has.

It is written from what `Classes`, `compilers.routing.marked_spread` and the pages say, reads ports
and cables only, and shares no code with `compilers.forwarding`. It is slow, and for small fabrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from compilers.routing.marked_spread import onward_ports
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS
from compilers.tables.intermediate_form import local, no_route

Link = frozenset[int]
Element = Link | int
"""What can fail: a link, by the two switches that it joins, or a switch."""
ARRIVED, LOST, LOOPED = "arrived", "lost", "looped"
HOST = 0


class At(NamedTuple):
    """A packet in a switch: the port that it came in by, HOST for a host's, and its mark."""

    switch: int
    came: int
    marked: bool = False


class Oracle:
    """A fabric some of whose links (pairs of switches) and switches are down."""

    def __init__(self, build: Build, links: Iterable[Link] = (), switches: Iterable[int] = ()):
        classes, routes, wiring = build.tables.classes, build.tables.routes, build.wiring
        self.build = build
        self.egress = routes.egress.tolist()
        self.here, self.nothing = local(routes.egress), no_route(routes.egress)
        self.rows = [
            {int(p): r for r, p in enumerate(routes.prefixes(s))} for s in range(len(self.egress))
        ]
        self.aggregate = routes.aggregate.tolist()
        self.port = classes.port.tolist()
        self.protection = classes.protection.tolist()
        self.bounce = classes.bounce.tolist()
        self.cable = {
            (s, int(wiring.port[s, k])): (int(far), int(wiring.far_port[s, k]))
            for s, row in enumerate(wiring.far)
            for k, far in enumerate(row)
            if far >= 0
        }
        self.weighted = [
            [
                [
                    (p, i)
                    for i, (p, w) in enumerate(zip([port, *more], weight, strict=True))
                    if w and (s, p) in self.cable
                ]
                for port, more, weight in zip(*of_switch, strict=True)
            ]
            for s, of_switch in enumerate(
                zip(self.port, classes.alternate.tolist(), classes.weight.tolist(), strict=True)
            )
        ]
        self.marks = build.forwarding.marks
        self.onward = (
            [onward_ports(wiring, s).tolist() for s in range(len(self.egress))]
            if self.marks
            else []
        )
        self.link_of = [{int(p): k for k, p in enumerate(row) if p} for row in wiring.port.tolist()]
        self.ends = [int(v) for v, has in enumerate(build.topology.endpoints) if has]
        self.elements = {
            (s, p): (frozenset((s, far)), far) for (s, p), (far, _) in self.cable.items()
        }
        self.asked = set[Element]()
        self.known: dict[tuple[int, int], int] = {}
        self.next: dict[tuple[At, int], tuple[list[At], set[Element]]] = {}
        self.whole: dict[tuple[int, int], tuple[list[tuple[list[int], str]], set[Element]]] = {}
        self.fail(links, switches)

    def fail(self, links: Iterable[Link] = (), switches: Iterable[int] = ()) -> None:
        """These links and switches are down now, and no others."""
        self.links, self.down = set(links), set(switches)

    def is_up(self, switch: int, port: int) -> bool:
        """Whether a port's link, and the switch behind it, are up."""
        link, far = elements = self.elements[switch, port]
        self.asked.update(elements)
        return far not in self.down and link not in self.links

    def number(self, switch: int, destination: int) -> int:
        """The egress value by the longest prefix; `nothing` where there is none."""
        found = self.known.get((switch, destination))
        if found is None:
            found = self.known[switch, destination] = self._looked_up(switch, destination)
        return found

    def _looked_up(self, switch: int, destination: int) -> int:
        for prefix in (destination, self.aggregate[destination]):
            row = self.rows[switch].get(prefix)
            if row is not None and self.egress[switch][row] != self.nothing:
                return int(self.egress[switch][row])
        return self.nothing

    def has_class(self, switch: int, number: int) -> bool:
        """Whether an egress value is a class of this switch."""
        return number < len(self.port[switch])

    def transit(self, switch: int, came: int, destination: int) -> int | None:
        """The port that a packet leaves by, None where it is dropped."""
        number = self.number(switch, destination)
        if not self.has_class(switch, number):
            return None
        port, protection = self.port[switch][number], self.protection[switch][number]
        order, bounce = [port, *protection], self.bounce[switch][number]
        shared = self.build.forwarding.every_hop and came in self.shares(switch, number)
        tried = [*bounce, port] if shared else bounce if came == port and came else order
        for p in tried:
            if (switch, p) in self.cable and p != came and self.is_up(switch, p):
                return int(p)
        return came if came and came in order else None

    def shares(self, switch: int, number: int) -> list[int]:
        """The ports of a class with a share."""
        return [p for p, _ in self.weighted[switch][number]]

    def spreads(self, switch: int, destination: int) -> bool:
        """Whether a switch spreads marked packets to a destination."""
        number, links = self.number(switch, destination), self.build.wiring.far.shape[1]
        return self.has_class(switch, number) and number // links != 1

    def moves(self, at: At, destination: int) -> list[tuple[int, bool]]:
        """The ports that a packet may leave by, with its mark there; none where it stops."""
        switch, came, marked = at
        number = self.number(switch, destination)
        if not self.has_class(switch, number):
            return []
        if marked and self.spreads(switch, destination):
            ports = self.onward[switch][self.link_of[switch][came]]
            return [(p, False) for p in ports if p and self.is_up(switch, p)]
        free = came == HOST or (
            self.build.forwarding.every_hop and came not in self.shares(switch, number)
        )
        found = [
            (p, self.marks and i > 0)
            for p, i in self.weighted[switch][number]
            if free and self.is_up(switch, p)
        ]
        if found:
            return found
        port = self.transit(switch, came, destination)
        return [] if port is None else [(port, False)]

    def over(self, at: At, port: int, marked: bool) -> At:
        """Where a packet is that leaves by a port."""
        far, came = self.cable[at.switch, port]
        return At(far, came, marked)

    def delivered(self, at: At, destination: int) -> bool:
        """Whether a packet has come to its destination's hosts."""
        here = self.number(at.switch, destination) == self.here
        return here and at.switch == destination

    def after(self, at: At, destination: int) -> list[At]:
        """Where a packet may be next: as in a whole fabric, where nothing it asks for is down."""
        if (at, destination) not in self.next:
            links, down, asked = self.links, self.down, self.asked
            self.fail()
            self.asked = set()
            self.next[at, destination] = self._after(at, destination), self.asked
            self.fail(links, down)
            self.asked = asked
        states, asked = self.next[at, destination]
        self.asked |= asked
        same = asked.isdisjoint(self.links) and asked.isdisjoint(self.down)
        return states if same else self._after(at, destination)

    def _after(self, at: At, destination: int) -> list[At]:
        """As `after`; a mark that nobody reads is none."""
        states = [self.over(at, *move) for move in self.moves(at, destination)]
        return [
            state if self.spreads(state.switch, destination) else state._replace(marked=False)
            for state in states
        ]

    def paths(self, source: int, destination: int) -> Iterator[tuple[list[int], str]]:
        """Every path that a host's packets may take, and how it ends."""
        waiting = [([source], At(source, HOST))]
        while waiting:
            path, at = waiting.pop()
            if self.delivered(at, destination):
                yield path, ARRIVED
            elif len(path) > MOST_HOPS:
                yield path, LOOPED
            else:
                states = self.after(at, destination)
                if not states:
                    yield path, LOST
                waiting += [([*path, state.switch], state) for state in reversed(states)]

    def outcomes(self) -> Iterator[tuple[int, int, list[tuple[list[int], str]]]]:
        """The paths of every pair of switches that are up.

        Those of a whole fabric, where what is down is nothing that they asked for.
        """
        links, down = self.links, self.down
        for s in self.ends:
            for d in self.ends:
                if s != d and not {s, d} & down:
                    if (s, d) not in self.whole:
                        self.fail()
                        self.asked = set()
                        self.whole[s, d] = list(self.paths(s, d)), self.asked
                        self.fail(links, down)
                    paths, asked = self.whole[s, d]
                    same = asked.isdisjoint(links) and asked.isdisjoint(down)
                    yield s, d, paths if same else list(self.paths(s, d))

    def reached(self, begin: Iterable[At], destination: int) -> tuple[dict[At, int], str, int]:
        """All states that packets come to, with the most links they can have taken.

        And the worst outcome: LOOPED if some go on for ever, else LOST, else ARRIVED; and the links
        of the longest path that ends.
        """
        depth = dict.fromkeys(begin, 0)
        now, worst, longest = list(depth), ARRIVED, 0
        for links in range(MOST_HOPS):
            later: dict[At, int] = {}
            for at in now:
                if self.delivered(at, destination):
                    longest = max(longest, links)
                    continue
                states = self.after(at, destination)
                worst = worst if states else LOST
                later |= dict.fromkeys(states, links + 1)
            depth |= later
            now = list(later)
            if not now:
                return depth, worst, longest
        return depth, LOOPED, longest

    def minimal(self, source: int, destination: int) -> int:
        """The links of the minimal path; -1 where it leads elsewhere."""
        at, links = source, 0
        while links <= MOST_HOPS:
            number = self.number(at, destination)
            if not self.has_class(at, number):
                return links if number == self.here and at == destination else -1
            port = self.port[at][number]
            if (at, port) not in self.cable:
                return -1
            at, links = self.cable[at, port][0], links + 1
        return -1


class LinkJudgement(NamedTuple):
    """What all packets do: counts as in `compilers.proof.walks.delivery_report.Report`."""

    hop_counts: tuple[int, ...]
    alternates: int
    strays: bool
    max_hops: int


def judged(oracle: Oracle) -> LinkJudgement:
    """All packets of hosts over every path, without failures."""
    oracle.fail()
    hops, alternates, strays, longest = dict[int, int](), 0, False, 0
    for d in oracle.ends:
        begin = [At(s, HOST) for s in oracle.ends if s != d]
        for s in (at.switch for at in begin):
            links, number = oracle.minimal(s, d), oracle.number(s, d)
            hops[links] = hops.get(links, 0) + 1
            alternates += len(oracle.weighted[s][number]) if oracle.has_class(s, number) else 0
        _, worst, most = oracle.reached(begin, d)
        strays |= worst != ARRIVED
        longest = max(longest, most)
    counts = tuple(hops.get(links, 0) for links in range(max(hops) + 1))
    return LinkJudgement(counts, alternates, strays, longest)


class Losses(NamedTuple):
    """What failures of one kind do: counts as in `FailureReport`."""

    lost_pairs: int
    looped: int
    max_hops: int
    stretch: int


def losses(oracle: Oracle, cases: Iterable[Iterable[Element]]) -> Losses:
    """Every case of failures by all packets that meet it, and every pair that loses some."""
    sets = [frozenset(case) for case in cases]
    of_element: dict[Element, list[int]] = {}
    for number, case in enumerate(sets):
        for element in case:
            of_element.setdefault(element, []).append(number)
    lost = looped = longest = stretch = 0
    for d in oracle.ends:
        oracle.fail()
        sources = [s for s in oracle.ends if s != d]
        depth, _, _ = oracle.reached([At(s, HOST) for s in sources], d)
        usual = {at: _needed(oracle, at, d) for at in depth}
        meeting = [
            (at, number)
            for at, ports in usual.items()
            for number in {
                n for p in ports for e in _elements(oracle, at, p) for n in of_element.get(e, ())
            }
        ]
        for at, number in meeting:
            _fail(oracle, sets[number])
            if not _meets(oracle, at, d, usual[at]):
                continue
            _, worst, most = oracle.reached([at], d)
            if worst == ARRIVED:
                oracle.fail()
                longest = max(longest, depth[at] + most)
                stretch = max(stretch, most - oracle.minimal(at.switch, d))
        touched = _touched(oracle, sources, d, of_element)
        for s in sources:
            for number in touched[s]:
                if s in sets[number] or d in sets[number]:
                    continue
                _fail(oracle, sets[number])
                _, worst, _ = oracle.reached([At(s, HOST)], d)
                lost += worst != ARRIVED
                looped += worst == LOOPED
    oracle.fail()
    return Losses(lost, looped, longest, stretch)


def _touched(
    oracle: Oracle, sources: list[int], d: int, of_element: dict[Element, list[int]]
) -> dict[int, set[int]]:
    """The cases of which an element is on some path of each source, without failures."""
    oracle.fail()
    found: dict[int, set[int]] = {}
    for s in sources:
        states, _, _ = oracle.reached([At(s, HOST)], d)
        found[s] = {
            number
            for at in states
            if not oracle.delivered(at, d)
            for port, _ in oracle.moves(at, d)
            for element in _elements(oracle, at, port)
            for number in of_element.get(element, ())
        }
    return found


def _needed(oracle: Oracle, at: At, d: int) -> list[int]:
    """The ports of which a packet needs one, failures aside; none where it spreads over links."""
    number = oracle.number(at.switch, d)
    if oracle.delivered(at, d) or not oracle.has_class(at.switch, number):
        return []
    if at.marked:
        return []
    if at.came == HOST and (ports := oracle.shares(at.switch, number)):
        return ports
    port = oracle.transit(at.switch, at.came, d)
    return [] if port is None else [port]


def _meets(oracle: Oracle, at: At, d: int, needed: list[int]) -> bool:
    """Whether failures concern a packet here: it could be here, and has none of its ports."""
    if {at.switch, d} & oracle.down or (at.came and not oracle.is_up(at.switch, at.came)):
        return False
    several = at.came == HOST or len(needed) == 1
    return several and not any(oracle.is_up(at.switch, port) for port in needed)


def _elements(oracle: Oracle, at: At, port: int) -> tuple[Element, Element]:
    far = oracle.cable[at.switch, port][0]
    return frozenset((at.switch, far)), far


def _fail(oracle: Oracle, case: frozenset[Element]) -> None:
    links = (element for element in case if isinstance(element, frozenset))
    oracle.fail(links, (element for element in case if isinstance(element, int)))
