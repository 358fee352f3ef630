"""A switch of an eBGP fabric in maintenance: the lines that have others go around it, and back.

What it announces of others gets a longer AS path, by so many systems that any other path is shorter
and this one is still let in: who has no other keeps it. Its own prefix stays as it is. The address
by which shares find it is withdrawn, so no share goes over it. All of this happens while the switch
forwards, and nothing waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from compilers.readers.emitted_report import EXAMPLES
from compilers.tables.build import Build
from compilers.targets.devices.reached import RouteMapWords
from compilers.targets.options import SET, Chosen
from compilers.targets.routed.bgp.control_plane import ROUTING, BgpFamily, BgpSpeaker
from compilers.targets.target_lookup import installed_systems, target
from inventory.problems import InputError


@runtime_checkable
class Speaking(Protocol):
    """The variables of a router's templates, as far as they are about BGP."""

    @property
    def bgp(self) -> BgpSpeaker | None:
        """What it says; None with static routes."""


def drained_systems() -> list[str]:
    """The systems whose route maps are written alike."""
    return [system.name for system in installed_systems() if system.route_maps]


def maintenance_lines(
    build: Build, name: str, options: Chosen, node: str, *, end: bool = False
) -> list[str]:
    """What to type on a switch so that others go around it.

    Args:
        build: the fabric's.
        name: of the target.
        options: those that it was rendered with.
        node: the switch.
        end: what takes these lines back.

    Raises:
        InputError: a system without such route maps, static routes, or no such switch.
    """
    system = target(name)
    words = system.route_maps
    if words is None:
        todo = "switch the policy of its BGP by hand, or shut its ports one by one"
        raise InputError.of(f"one of {', '.join(drained_systems())}", name, todo, key="target")
    named, chosen = system.check(build, options)
    if chosen[ROUTING] != "bgp":
        todo = "static routes go around a switch when its ports are down"
        raise InputError.of("bgp", chosen[ROUTING], todo, key=f"{SET} {ROUTING}")
    names = build.wiring.names
    if node not in names:
        known = ", ".join(names[:EXAMPLES])
        raise InputError.of(f"a switch, such as {known}", node, key="NODE")
    values = system.variables(named, chosen)(names.index(node))
    speaker = values.bgp if isinstance(values, Speaking) else None
    if speaker is None:
        raise InputError.of("a system that speaks BGP", name, key="target")
    more = speaker.longest - build.topology.diameter
    lines = [
        line for f in speaker.families for line in _policies(f, words, speaker.number, more, end)
    ]
    shares = [line for f in speaker.families if f.via for line in _shares(f, words.family, end)]
    if shares:
        lines += [f"router bgp {speaker.number}", *shares, "exit"]
    return lines


def _policies(
    f: BgpFamily, words: RouteMapWords, number: int, more: int, end: bool
) -> Iterator[str]:
    own, announced = f"{f.word} prefix-list own-{f.name}", f"route-map announced-{f.name} permit"
    permitted = f"seq 5 permit {f.own}"
    one = [own, f" {permitted}", "exit"] if words.list_sections else [f"{own} {permitted}"]
    if f.own and not end:
        yield from one
        yield from (f"{announced} 5", f" match {f.word} address prefix-list own-{f.name}", "exit")
    longer = f" {' '.join([str(number)] * more)}" * (not end)
    yield from (f"{announced} 10", f" {'no ' * end}set as-path prepend{longer}", "exit")
    if f.own and end:
        yield from (f"no {announced} 5", f"no {own if words.list_sections else one[0]}")


def _shares(f: BgpFamily, unicast: str, end: bool) -> Iterator[str]:
    network = f"{'' if end else 'no '}network {f.via}"
    yield from (f" address-family {f.name}{unicast}", f"  {network}", " exit")
