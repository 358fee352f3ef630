"""The opensm target: what OpenSM's `file` routing engine and QoS need (docs/targets/opensm.md).

It writes the forwarding tables of the whole fabric, the settings and the QoS policy of OpenSM, and
descriptions of the fabric for the simulator ibsim and the checker ibdm.

A *LID* is the address of a port in the subnet. With `lmc` a host has several LIDs, and each has its
own routes, its *LID layer* (`lid_layers`). A *lane* is the virtual lane on which a pair of switches
sends, so that no deadlock can occur. Lanes are the `Layers` of `extensions.lossless.layers`, as
InfiniBand names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.families import polarstar
from compilers.readers.emitted_report import EmittedReport
from compilers.spec.features import AGGREGATES, CHANNELS
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Egress, Tables, local, no_route
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import Chosen, Option
from compilers.targets.rendering.renderer import Renderer, installed_nodes
from compilers.targets.target import Progress, Target
from compilers.topology import polarity
from extensions.infiniband import ibnetdiscover, lfts
from extensions.infiniband.guids import Guids
from extensions.infiniband.lid_layers import LidLayers, lid_layers
from extensions.infiniband.star_layers import LAYERS, MOST_SWITCHES, UNSET
from extensions.infiniband.subnet_check import check_subnet
from extensions.lossless.layers import Layers as Lanes
from extensions.lossless.layers import layers as lanes_of_build
from inventory.problems import InputError, Problem

LFTS = "lfts.txt"
"""The file of the linear forwarding tables."""
LANES = (1, 2, 4, 8, 15)
"""How many data lanes a port can run (InfiniBand Architecture Specification, volume 1, 3.5.7)."""
MOST_SWITCH_PORTS = 254
"""The most ports of a switch in InfiniBand."""
GUIDS_A_LINE = 8
"""The GUIDs in a line of a port group."""
HERE = -2
"""In place of a port: the packets are for this switch or its hosts."""


@dataclass(frozen=True, slots=True)
class OpensmVariables:
    """The variables of the templates, for the whole fabric."""

    identity: str
    """The identity of the build."""
    folder: str
    """The folder on the machine where OpenSM runs."""
    lmc: int
    """The LID mask count: a port has 2^lmc LIDs."""
    lids: int
    """How many LIDs each port has."""
    lanes: int
    """How many virtual lanes carry data."""
    max_vls: int
    """The data lanes that ports are set to, one of `LANES`."""
    arbitration: str
    """The weights of the virtual lanes."""
    sl2vl: str
    """The virtual lane of each service level."""
    groups: list[dict[str, Any]]
    """The port groups of the QoS policy: `name`, and `guids` in lines."""
    rules: list[dict[str, Any]]
    """The rules of the QoS policy: `source`, `destination` and `lane`."""
    switches: list[dict[str, Any]]
    """`name`, `guid`, `digits`, `id`, `system` and `ports` of each switch, and its `cables`, each
    with `number`, `far`, `far_port`, `name`, `peer` and `system`."""
    hosts: list[dict[str, Any]]
    """`name`, `guid`, `port_guid`, `id`, `switch`, `node` and `port` of each host."""


def _check_files(
    build: Build, chosen: Chosen, folder: Path, progress: Progress, accept: tuple[str, ...]
) -> EmittedReport:
    """Compare the written files with the tables (`Target.fabric_check`)."""
    return check_subnet(build, folder, progress, _lid_layers(build, chosen), accept)


class Opensm(Target):
    """OpenSM's `file` routing engine and QoS."""

    name = "opensm"
    summary = "lfts.txt and what else OpenSM needs, for the whole fabric"
    files = dict.fromkeys(
        ("opensm.conf", "qos-policy.conf", "fabric.net", "fabric.topo", "hosts.env"),
        OpensmVariables,
    )
    capabilities = Capabilities(frozenset({AGGREGATES, CHANNELS}), rows=lfts.MOST_LIDS)
    whole_fabric = True
    neighbours = ibnetdiscover.FORM
    fabric_check = staticmethod(_check_files)
    options = MappingProxyType(
        {
            "guids": Option.choice(
                "where GUIDs come from; made-up ones are for a simulator", "inventory", "made-up"
            ),
            "folder": Option(
                "where the files will lie on the subnet manager's host",
                "/etc/opensm",
                "an absolute path of printable characters without spaces",
                lambda text: text.startswith("/") and text.isprintable() and " " not in text,
            ),
            "lmc": Option.choice(
                "2^lmc LIDs for every host, each with paths of its own; PolarStar: 1", *"0123"
            ),
            "lanes": Option.choice("with lmc: how many data lanes ports can run", *"842"),
        }
    )

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], OpensmVariables]:
        """See `Target.variables`."""
        guids = _guids(build, chosen)
        _require_limits(build, chosen)
        lid_layering = _lid_layers(build, chosen)
        lanes = lid_layering.lanes if lid_layering else lanes_of_build(build)
        _require_lanes(lanes, chosen)
        groups, rules = _policy(build, guids, lanes)
        values = OpensmVariables(
            identity=build.identity,
            folder=chosen["folder"],
            lmc=int(chosen["lmc"]),
            lids=1 << int(chosen["lmc"]),
            lanes=lanes.count,
            max_vls=min(n for n in LANES if n >= lanes.count),
            arbitration=",".join(f"{lane}:64" for lane in range(lanes.count)),
            sl2vl=",".join(str(sl if sl < lanes.count else 0) for sl in range(16)),
            groups=groups,
            rules=rules,
            switches=list(_switches(build, guids)),
            hosts=list(_hosts(build, guids)),
        )
        return lambda _: values

    def write_fabric(
        self, renderer: Renderer, build: Build, chosen: Chosen, out: Path, progress: Progress
    ) -> None:
        """See `Target.write_fabric`."""
        renderer.refuse_template(LFTS)
        super().write_fabric(renderer, build, chosen, out, None)
        for name, text in definitions(build):
            renderer.write_bytes(out, f"{name}.ibnl", [text])
        lid_layering = _lid_layers(build, chosen)
        layer_tables = lid_layering.tables if lid_layering else ()
        tables = _Tables(build, _guids(build, chosen), layer_tables)
        renderer.write_bytes(out, LFTS, tables.blocks(progress))


def _guids(build: Build, chosen: Chosen) -> Guids:
    """The GUIDs that the option `guids` asks for."""
    return Guids.made_up(build) if chosen["guids"] == "made-up" else Guids.of_inventory(build)


def _lid_layers(build: Build, chosen: Chosen) -> LidLayers | None:
    """The LID layers that `lmc` asks for; None where each host has one LID, with minimal routes."""
    lids = 1 << int(chosen["lmc"])
    return lid_layers(build, lids, int(chosen["lanes"])) if lids > 1 else None


def _require_limits(build: Build, chosen: Chosen) -> None:
    """Pass when a fabric is within the limits of InfiniBand, and can have the layers.

    Raises:
        InputError: a port number or the LIDs are too many, or the fabric cannot have the layers.
    """
    wiring, present = build.wiring, build.topology.present
    per_host = 1 << int(chosen["lmc"])
    hosts = int(np.count_nonzero(wiring.host_port[present]))
    lids = int(np.count_nonzero(present)) + hosts * per_host + per_host - 1
    problems = [
        _too_many_problem(what, count, limit)
        for what, count, limit in (
            ("LIDs (InfiniBand's unicast addresses)", lids, lfts.MOST_LIDS),
            ("ports per switch", max(map(len, wiring.port_names)), MOST_SWITCH_PORTS),
        )
        if count > limit
    ]
    if per_host > 1:
        problems += _layer_problems(build, per_host, chosen["lmc"])
    if problems:
        raise InputError(problems)


def _layer_problems(build: Build, lids: int, lmc: str) -> Iterator[Problem]:
    """The problems of a fabric that cannot have so many LID layers.

    Args:
        build: the fabric.
        lids: how many LIDs, and so layers, a host has.
        lmc: the option that asks for them.
    """
    required = todo = ""
    if polarstar.is_whole(build.topology):
        if lids > LAYERS:
            required = "at most 1 for a PolarStar, so two paths to every switch"
        elif build.tables.switches > MOST_SWITCHES:
            required = f"0 for a PolarStar of more than {MOST_SWITCHES} switches"
    elif not polarity.is_whole(build.topology):
        required = "0, but for a PolarFly or PolarStar without gaps, whose shape the layers follow"
        todo = "leave lmc out, or compile the fabric as it is planned, without damage"
    elif lids > (links := build.wiring.far.shape[1]):
        required = f"at most {links.bit_length() - 1}: every path to a switch comes in over "
        required += f"another of its {links} links"
    if required:
        yield Problem(key="set lmc", required=required, given=lmc, todo=todo)


def _require_lanes(lanes: Lanes, chosen: Chosen) -> None:
    """Pass when ports can run as many lanes.

    Raises:
        InputError: they cannot, or the two paths of some pairs fit none.
    """
    if lost := np.count_nonzero(lanes.layer == UNSET):
        raise InputError(
            [
                Problem(
                    key="set lanes",
                    required="enough lanes for both paths of every pair",
                    given=f"{chosen['lanes']}: {lost:,} pairs of switches fit none",
                    todo="allow more lanes if ports can run them, or leave lmc out",
                )
            ]
        )
    if lanes.count > LANES[-1]:
        raise InputError([_too_many_problem("data lanes", lanes.count, LANES[-1])])


def _too_many_problem(what: str, count: int, limit: int) -> Problem:
    """The problem that a fabric has more of something than InfiniBand allows."""
    return Problem(
        key="topology",
        required=f"at most {limit:,} {what}",
        given=f"{count:,}",
        todo="choose a smaller fabric or another target",
    )


class _Tables:
    """The linear forwarding tables of a build: the port of every switch towards every LID.

    The LID of a switch has the minimal routes. Each LID of a host has the routes of its layer.
    """

    def __init__(self, build: Build, guids: Guids, layers: Sequence[Tables]) -> None:
        self.build, self.guids = build, guids
        # bool[S, P], whether a switch has a host of this number.
        has_host = build.wiring.host_port > 0
        has_host &= build.topology.present[:, None]
        switch, number = np.nonzero(has_host)
        present = np.flatnonzero(build.topology.present)
        # The ends that have LIDs: all switches, and then all hosts.
        vertex = np.concatenate((present, switch))
        ports = build.wiring.host_port[switch, number].astype(np.int64)
        host_port = np.concatenate((np.zeros(len(present), np.int64), ports))
        guid = np.concatenate((guids.switch[present], guids.host[switch, number]))
        # A host's first LID is a multiple of their number, so hosts that have several come first.
        ends_by_lid = np.lexsort((host_port, vertex, (host_port == 0) & (len(layers) > 0)))
        lids = np.where(host_port[ends_by_lid] > 0, max(1, len(layers)), 1)
        # int64[L] each: the end that has a LID, and the index of the end's first LID.
        end, first_lid = np.repeat(ends_by_lid, lids), np.repeat(np.cumsum(lids) - lids, lids)
        layer = np.arange(len(end)) - first_lid
        self.vertex = vertex[end]
        """int64[L], the switch of each LID, or the switch of its host."""
        self.host_port = host_port[end]
        """int64[L], the port of that switch to the LID; 0 is the switch itself."""
        self.table = np.where((host_port[end] > 0) & (len(layers) > 0), layer + 1, 0)
        """int64[L], the tables of each LID, an index in `_egress`."""
        self.layout = lfts.LftLayout.of(np.arange(len(end)) + max(1, len(layers)), guid[end])
        everywhere = np.arange(build.tables.switches)
        cables = build.wiring.cables()
        self._egress = [
            Fib.of(tables, cables).egress(everywhere) for tables in (build.tables, *layers)
        ]
        """The egress values of the minimal tables, and of each layer."""

    def port(self, vertex: int) -> NDArray[np.int64]:
        """int64[L]: where a switch sends packets for each LID; -1: nowhere."""
        towards = np.stack([self._towards(vertex, egress[vertex]) for egress in self._egress])
        port = towards[self.table, self.vertex]
        return np.where(port == HERE, self.host_port, port)

    def _towards(self, vertex: int, egress: Egress) -> NDArray[np.int64]:
        """int64[S]: the port towards each switch, -1 or HERE, of a row of egress values."""
        forwards = egress < no_route(egress)
        port = np.full(len(egress), -1, np.int64)
        port[forwards] = self.build.tables.classes.port[vertex, egress[forwards]]
        port[egress == local(egress)] = HERE
        return port

    def blocks(self, progress: Progress) -> Iterator[bytes]:
        """The file, a switch after the other."""
        yield f"# polarfab build {self.build.identity}\n".encode()
        for vertex, _ in installed_nodes(self.build, progress):
            yield self.layout.block(int(self.guids.switch[vertex]), self.port(vertex))


def _policy(
    build: Build, guids: Guids, lanes: Lanes
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Port groups, and the rules that give pairs of hosts their lane where it is not 0."""
    names, ends = build.wiring.names, np.flatnonzero(build.topology.endpoints)
    groups, rules = [], []
    for source in ends.tolist():
        lane = lanes.layer[source, ends]  # by destination
        other_lanes = np.unique(lane[lane > 0]).tolist()
        if other_lanes:
            groups.append({"name": names[source], "guids": _lines(guids.host[source])})
        for number in other_lanes:
            name = f"{names[source]} lane {number}"
            groups.append({"name": name, "guids": _lines(guids.host[ends[lane == number]])})
            rules.append({"source": names[source], "destination": name, "lane": number})
    return groups, rules


def _lines(guids: NDArray[np.uint64]) -> list[str]:
    """GUIDs in lines of a port group."""
    texts = [_hex(guid) for guid in guids[guids > 0].tolist()]
    return [", ".join(texts[i : i + GUIDS_A_LINE]) for i in range(0, len(texts), GUIDS_A_LINE)]


def _hex(guid: int) -> str:
    """A GUID as OpenSM writes it."""
    return f"{guid:#018x}"


def _hosts(build: Build, guids: Guids) -> Iterator[dict[str, Any]]:
    """The host adapters, for the templates; the GUID of a node is that of its port less one."""
    wiring = build.wiring
    for v, h in np.argwhere(guids.host > 0).tolist():
        port_guid = int(guids.host[v, h])
        yield {
            "name": wiring.host_names[v * guids.host.shape[1] + h],
            "guid": _hex(port_guid - 1),
            "port_guid": f"{port_guid:x}",
            "id": _adapter(port_guid),
            "switch": _switch(int(guids.switch[v])),
            "node": wiring.names[v],
            "port": int(wiring.host_port[v, h]),
        }


def _switches(build: Build, guids: Guids) -> Iterator[dict[str, Any]]:
    """The switches with their cables, for the templates; see `OpensmVariables`."""
    wiring = build.wiring
    for v, name in installed_nodes(build):
        ports = len(wiring.port_names[int(wiring.node_type[v])])
        links = np.flatnonzero(wiring.far[v] >= 0)
        columns = wiring.port[v, links], wiring.far[v, links], wiring.far_port[v, links]
        cables = [
            {
                "number": port,
                "far": _switch(int(guids.switch[far])),
                "far_port": far_port,
                "name": wiring.names[far],
                "peer": wiring.names[far],
                "system": system(len(wiring.port_names[int(wiring.node_type[far])])),
            }
            for port, far, far_port in np.stack(columns, axis=1).tolist()
        ]
        cables += [
            {
                "number": int(wiring.host_port[v, h]),
                "far": _adapter(int(guids.host[v, h])),
                "far_port": 1,
                "name": name,
                "peer": wiring.host_names[v * guids.host.shape[1] + h],
                "system": ADAPTER,
            }
            for h in np.flatnonzero(guids.host[v]).tolist()
        ]
        yield {
            "name": name,
            "guid": _hex(int(guids.switch[v])),
            "digits": f"{int(guids.switch[v]):x}",
            "id": _switch(int(guids.switch[v])),
            "system": system(ports),
            "ports": ports,
            "cables": sorted(cables, key=itemgetter("number")),
        }


def _switch(guid: int) -> str:
    """The id of a switch in the subnet."""
    return f"S-{guid:016x}"


def _adapter(port_guid: int) -> str:
    """The id of a host's adapter in the subnet."""
    return f"H-{port_guid - 1:016x}"


ADAPTER = "adapter"
"""The system of a host: one adapter with one port."""


def system(ports: int) -> str:
    """The name of a switch's system. It may not begin with SW."""
    return f"switch_{ports}"


def definitions(build: Build) -> Iterator[tuple[str, bytes]]:
    """The name and the definition of each system: switches, and the adapter."""
    for ports in sorted({len(names) for names in build.wiring.port_names}):
        yield system(ports), _definition(system(ports), "SW", ports)
    yield ADAPTER, _definition(ADAPTER, "CA", 1)


def _definition(name: str, kind: str, ports: int) -> bytes:
    """The IBNL file of a kind of systems with one node."""
    lines = [f"TOPSYSTEM {name}", "", f"NODE {kind} {ports} {name} U1"]
    lines += [f"{port} -> P{port}" for port in range(1, ports + 1)]
    return "\n".join([*lines, "", ""]).encode()
