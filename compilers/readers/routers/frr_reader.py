"""Reader of frr.conf with static routes, and of the files for `ip -batch` next to it.

Of the static routes of a prefix in a table those of the least distance whose interface is up are
installed; several of one distance share by weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from compilers.readers.emitted_forwarding import (
    EmittedSwitch,
    NextHop,
    Port,
    address_text,
    found_by,
)
from compilers.readers.grammar.text_engine import Place, TextEngine
from compilers.readers.route_tables import RouteHop, RouteLines
from compilers.readers.routers.iproute_marks import port_to
from compilers.readers.routers.iproute_reader import MAIN, KernelActor, RouterFiles
from compilers.readers.routers.tracked_links import TrackedLinks

NAME = "frr.conf"
LARGEST_DISTANCE = 254
"""A route of distance 255 is never used."""


@dataclass(slots=True)
class FrrActor(KernelActor):
    """What the statements of frr.conf do.

    watched: whether BFD is to watch every link. tracked: whether BGP keeps all next hops for it.
    """

    watched: bool = False
    tracked: bool = False

    def static(self, place: Place) -> RouteHop | None:
        """A static route; None: it could not be installed, as its gateway
        is no address or no interface has it, or is not watched as it should be.
        """
        said = place.fields
        table = int(said.get("table", MAIN))
        if "gateway" not in said:
            return None if "table" in said and table == MAIN else RouteHop(table, 254, ())
        try:
            distance, gateway = int(said.get("distance", 1)), address_text(said["gateway"])
        except ValueError:
            return None
        if "interface" not in said:
            found = self.tracked or (table != MAIN and "distance" not in said)
            port = found_by(gateway)
            in_use = 0 < distance <= LARGEST_DISTANCE
            return RouteHop(table, distance, ((port, 1),)) if found and in_use else None
        if self.tracked:
            return None
        if ("bfd" in said) is not self.watched or not 0 < distance <= LARGEST_DISTANCE:
            return None
        if "." in gateway and "onlink" not in said:
            return None  # no interface has a network in which it could be found
        port = port_to(said["interface"], gateway)
        return RouteHop(table, distance, ((port, int(said.get("weight", 1))),))


def read_frr(folder: Path, bfd: bool = False, tracked: bool = False) -> EmittedSwitch:
    """A switch of target frr with static routes, from its folder.

    Args:
        folder: of the switch.
        bfd: whether BFD is to watch every link.
        tracked: whether BGP keeps the next hops for that.

    Raises:
        OSError: a file is not there.
        ValueError: an address makes no sense.
    """
    files, actor, engine = read_frr_text(folder, bfd, tracked)
    file = str(folder / NAME)
    if tracked:
        links = TrackedLinks.read(file, engine.said)
        known: dict[Port, Port] = {found_by(a): port for a, port in links.ports.items()}
        next_hops = {
            text: next_hop._replace(
                stage=tuple((known.get(port, port), w) for port, w in next_hop.stage)
            )
            for text, next_hop in actor.next_hops.items()
        }
        return links.switch(files.switch(file, files.tables(NAME, engine, next_hops), ()))
    for text, line in engine.said.items():
        files.unknown(NAME, line, text)
    hops: dict[tuple[str, str], NextHop] = {}
    for text, first in engine.routes.get("", RouteLines()).first_lines().items():
        if actor.next_hops[text].stage:
            _, gateway, port = text.split(" ", 3)[:3]
            hop = NextHop(port, address_text(gateway), file, first)
            hops.setdefault((gateway, port), hop)
    return files.switch(file, files.tables(NAME, engine, actor.next_hops), hops.values())


def read_frr_text(
    folder: Path, bfd: bool, tracked: bool = False
) -> tuple[RouterFiles, FrrActor, TextEngine]:
    """Read frr.conf and the files next to it.

    Raises:
        OSError: a file is not there.
    """
    files = RouterFiles(folder)
    actor = FrrActor(files, NAME, watched=bfd, tracked=tracked)
    engine = files.read("frr", NAME, actor)
    for each in ("links.batch", "rules.batch"):
        files.read("frr", each)
    files.read_settings("frr")
    return files, actor, engine
