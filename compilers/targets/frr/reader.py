"""Reader of frr.conf, and of the files for `ip -batch` next to it, as target frr renders them.

The check of emitted files asks for an `EmittedSwitch` (`read_frr`), or with eBGP for a `BgpSwitch`
(`read_frr_speaker`): how the switch forwards by its files, and what is wrong with them. Of the
static routes to a prefix FRR installs those with the smallest distance whose interface is up.
Several of one distance share packets by weight.

With static routes and BFD, FRR 8.4 has *tracked* next hops (`routed.bgp.tracked`): each link has an
address that BGP announces to the neighbour on that link only. When BFD takes the session down, the
address disappears, and with it the static routes that use it. `tracked_links` reads this part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from compilers.readers.bgp.bgp_dialects import dialect
from compilers.readers.bgp.bgp_files import with_ports
from compilers.readers.bgp.bgp_speaker import (
    BgpSwitch,
    Speaker,
    SpeakerOptions,
    with_described_sessions,
)
from compilers.readers.emitted_forwarding import (
    EmittedSwitch,
    NextHop,
    Port,
    address_text,
    port_via,
)
from compilers.readers.exact_text import exact_number
from compilers.readers.grammar.text_engine import Statement, TextEngine
from compilers.readers.route_tables import RouteHop, RouteLines
from compilers.readers.routers.iproute_marks import port_to
from compilers.readers.routers.iproute_reader import KERNEL_MAIN, RouterFiles
from compilers.readers.routers.kernel_actor import ONE_TABLE, KernelActor, read_file
from compilers.readers.statements import Statements
from compilers.targets.frr.tracked_links import TrackedLinks

FRR_CONF = "frr.conf"
"""The name of the file."""
LARGEST_DISTANCE = 254
"""The largest distance of a route that FRR uses."""


@dataclass(slots=True)
class FrrActor(KernelActor):
    """What the verbs of the grammar of frr.conf do, one method for each verb."""

    bfd: bool = False
    """Whether BFD watches every link."""
    tracked: bool = False
    """Whether static routes have tracked next hops."""

    def static(self, statement: Statement) -> RouteHop | None:
        """The next hop of a static route; None where FRR would not install it.

        None also stands for a route that BFD does not watch as the option says.
        """
        fields = statement.fields
        table = exact_number(fields.get("table", str(KERNEL_MAIN)))
        discards = "gateway" not in fields
        if discards:
            # Rendered files name no table in routes of table main.
            names_main = "table" in fields and table == KERNEL_MAIN
            return None if names_main else RouteHop(table, LARGEST_DISTANCE, ())
        try:
            distance = exact_number(fields.get("distance", "1"))
            gateway = address_text(fields["gateway"])
        except ValueError:
            return None
        if not 0 < distance <= LARGEST_DISTANCE:
            return None
        if "interface" not in fields:
            # Without BFD, BGP resolves next hops of routes for packets from hosts only. These are
            # in tables of their own, and state no distance.
            resolved_by_bgp = self.tracked or (table != KERNEL_MAIN and "distance" not in fields)
            next_hop = ((port_via(gateway), 1),)
            return RouteHop(table, distance, next_hop) if resolved_by_bgp else None
        if self.tracked or ("bfd" in fields) is not self.bfd:
            return None
        if "." in gateway and "onlink" not in fields:
            return None  # links have no IPv4 network in which FRR could look the gateway up
        port = port_to(fields["interface"], gateway)
        return RouteHop(table, distance, ((port, exact_number(fields.get("weight", "1"))),))


class FrrFiles(NamedTuple):
    """The files of a switch, read by their grammars, with the reading of frr.conf."""

    files: RouterFiles
    """All files of the folder."""
    actor: FrrActor
    """What the verbs of frr.conf's grammar have read."""
    engine: TextEngine
    """The engine that read frr.conf, with the statements that no verb took."""


def read_frr(
    folder: Path, bfd: bool = False, tracked: bool = False, gtsm: bool = False
) -> EmittedSwitch:
    """Read the folder of a switch with static routes.

    Args:
        folder: the folder of the switch.
        bfd: whether BFD watches every link.
        tracked: whether static routes have tracked next hops.
        gtsm: whether BGP sessions have TTL security (RFC 5082).

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    frr_files = read_frr_files(folder, bfd, tracked)
    if tracked:
        return _with_tracked_links(frr_files, gtsm)
    files, actor, engine = frr_files
    # Without BGP, frr.conf has no statements but those that a verb takes.
    for text, line in engine.statement_lines.items():
        files.add_unread(FRR_CONF, line, text)
    next_hops = _next_hops(frr_files)
    tables = files.read_tables(FRR_CONF, engine, actor.next_hops)
    return files.finish(str(folder / FRR_CONF), tables, next_hops)


def _next_hops(frr_files: FrrFiles) -> list[NextHop]:
    """The gateways of static routes and the ports to them, each once."""
    files, actor, engine = frr_files
    file = str(files.folder / FRR_CONF)
    next_hops: dict[tuple[str, str], NextHop] = {}
    for text, line in engine.routes.get(ONE_TABLE, RouteLines()).first_lines().items():
        discards = not actor.next_hops[text].ports
        if not discards:
            # The text is `static GATEWAY INTERFACE …`.
            _, gateway, port = text.split(" ", 3)[:3]
            next_hop = NextHop(port, address_text(gateway), file, line)
            next_hops.setdefault((gateway, port), next_hop)
    return list(next_hops.values())


def _with_tracked_links(frr_files: FrrFiles, gtsm: bool) -> EmittedSwitch:
    """The forwarding of a switch whose static routes have tracked next hops."""
    files, actor, engine = frr_files
    file = str(files.folder / FRR_CONF)
    links = TrackedLinks.read(file, engine.statement_lines, files.far_ends(), gtsm)
    # A route names the address of a neighbour, and the links say by which port BGP reaches it.
    port_of: dict[Port, Port] = {port_via(address): port for address, port in links.ports.items()}
    next_hops = {
        text: next_hop._replace(
            ports=tuple((port_of.get(port, port), weight) for port, weight in next_hop.ports)
        )
        for text, next_hop in actor.next_hops.items()
    }
    return links.finish(files.finish(file, files.read_tables(FRR_CONF, engine, next_hops), ()))


def read_frr_files(folder: Path, bfd: bool, tracked: bool = False) -> FrrFiles:
    """Read frr.conf and the files next to it.

    Raises:
        OSError: a file is not there.
    """
    files = RouterFiles(folder)
    actor = FrrActor(files, FRR_CONF, bfd=bfd, tracked=tracked)
    engine = read_file(files, "frr", FRR_CONF, actor)
    for name in ("links.batch", "rules.batch"):
        read_file(files, "frr", name)
    files.read_settings("frr")
    return FrrFiles(files, actor, engine)


def read_frr_speaker(folder: Path, options: SpeakerOptions) -> BgpSwitch:
    """Read the folder of a switch that speaks BGP.

    Raises:
        OSError: a file is not there.
    """
    files, actor, engine = read_frr_files(folder, options.bfd)
    file = str(folder / FRR_CONF)
    speaker = Speaker.read(Statements(engine.statement_lines), dialect(FRR_CONF), options)
    tables = files.read_tables(FRR_CONF, engine, actor.next_hops)
    without_bgp = files.finish(file, tables, ())
    # The kernel goes on to the policy rule of table main if a port's own table has no route.
    switch = replace(speaker.switch(file, without_bgp), falls_through=True)
    if options.numbered:
        switch = with_ports(switch, files.link_ends, file, numbered=True)
    return with_described_sessions(switch, files.far_ends())
