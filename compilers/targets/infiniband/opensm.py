"""The opensm target: what OpenSM's `file` routing engine and QoS need (docs/targets/opensm.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.proof.layers import Layers, layers
from compilers.readers.subnet_check import check_subnet
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local, no_route
from compilers.tables.walk import Walker
from compilers.targets.capabilities import Capabilities
from compilers.targets.features import AGGREGATES, CHANNELS
from compilers.targets.infiniband import lfts
from compilers.targets.infiniband.guids import Guids
from compilers.targets.options import Chosen, Option
from compilers.targets.rendering import Renderer, nodes
from compilers.targets.target import FabricCheck, Progress, Target
from inventory.problems import InputError, Problem

LFTS = "lfts.txt"
LANES = (1, 2, 4, 8, 15)
"""How many data lanes a port can run (InfiniBand Architecture Specification, volume 1, 3.5.7)."""
MOST_SWITCH_PORTS = 254
GUIDS_A_LINE = 8


@dataclass(frozen=True, slots=True)
class OpensmVariables:
    """The variables of the templates (docs/targets/opensm.md lists them)."""

    identity: str
    folder: str
    lanes: int
    max_vls: int
    arbitration: str
    sl2vl: str
    groups: list[dict[str, Any]]
    rules: list[dict[str, Any]]
    switches: list[dict[str, Any]]
    hosts: list[dict[str, Any]]


class Opensm(Target):
    """OpenSM's `file` routing engine and QoS."""

    name = "opensm"
    summary = "lfts.txt and what else OpenSM needs, for the whole fabric"
    files = dict.fromkeys(("opensm.conf", "qos-policy.conf", "fabric.net"), OpensmVariables)
    capabilities = Capabilities(frozenset({AGGREGATES, CHANNELS}), rows=lfts.MOST_LIDS)
    whole_fabric = True
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
        }
    )

    def fabric_check(self) -> FabricCheck:
        """See `Target.fabric_check`."""
        return check_subnet

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], OpensmVariables]:
        """See `Target.variables`."""
        guids = _guids(build, chosen)
        found = layers(build)
        _require(build, found)
        groups, rules = _policy(build, guids, found)
        values = OpensmVariables(
            identity=build.identity,
            folder=chosen["folder"],
            lanes=found.count,
            max_vls=min(n for n in LANES if n >= found.count),
            arbitration=",".join(f"{lane}:64" for lane in range(found.count)),
            sl2vl=",".join(str(sl if sl < found.count else 0) for sl in range(16)),
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
        tables = _Tables(build, _guids(build, chosen))
        renderer.write_bytes(out, LFTS, tables.blocks(progress))


def _guids(build: Build, chosen: Chosen) -> Guids:
    return Guids.made_up(build) if chosen["guids"] == "made-up" else Guids.known(build)


def _require(build: Build, found: Layers) -> None:
    """Limits that no switch has, but InfiniBand.

    Raises:
        InputError: a port number, the LIDs or the lanes are too many.
    """
    w, present = build.wiring, build.topology.present
    lids = int(np.count_nonzero(present)) + int(np.count_nonzero(w.host_port[present]))
    problems = [
        Problem(
            key="topology",
            required=f"at most {limit:,} {what}",
            given=f"{given:,}",
            todo="choose a smaller fabric or another target",
        )
        for what, given, limit in (
            ("LIDs (InfiniBand's unicast addresses)", lids, lfts.MOST_LIDS),
            ("ports per switch", max(map(len, w.port_names)), MOST_SWITCH_PORTS),
            ("data lanes", found.count, LANES[-1]),
        )
        if given > limit
    ]
    if problems:
        raise InputError(problems)


class _Tables:
    """The linear forwarding tables of a build: the port of every switch towards every LID."""

    def __init__(self, build: Build, guids: Guids) -> None:
        self.build, self.guids = build, guids
        there = build.wiring.host_port > 0
        there &= build.topology.present[:, None]
        switch, number = np.nonzero(there)
        present = np.flatnonzero(build.topology.present)
        at = np.concatenate((present, switch))
        own = np.concatenate((np.zeros_like(present), build.wiring.host_port[switch, number]))
        guid = np.concatenate((guids.switch[present], guids.host[switch, number]))
        order = np.lexsort((own, at))
        self.at, self.own = at[order], own[order]
        self.layout = lfts.LftLayout.of(guid[order])
        walker = Walker.of(build.tables, build.wiring.cables())
        self._egress = walker.egress(np.arange(build.tables.switches))

    def port(self, vertex: int) -> NDArray[np.int64]:
        """int64[L]: where a switch sends packets for each destination; -1: nowhere."""
        egress = self._egress[vertex]
        forwards = egress < no_route(egress)
        port = np.full(len(egress), -1, np.int64)
        port[forwards] = self.build.tables.classes.port[vertex, egress[forwards]]
        here = np.flatnonzero(egress == local(egress))
        return np.where(np.isin(self.at, here), self.own, port[self.at])

    def blocks(self, progress: Progress) -> Iterator[bytes]:
        """The file, a switch after the other."""
        yield f"# polarfab build {self.build.identity}\n".encode()
        for vertex, _ in nodes(self.build, progress):
            yield self.layout.block(int(self.guids.switch[vertex]), self.port(vertex))


def _policy(
    build: Build, guids: Guids, found: Layers
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Port groups, and the rules that give pairs of hosts their lane where it is not 0."""
    names, ends = build.wiring.names, np.flatnonzero(build.topology.endpoints)
    groups, rules = [], []
    for source in ends.tolist():
        lane = found.layer[source, ends]
        used = np.unique(lane[lane > 0]).tolist()
        if used:
            groups.append({"name": names[source], "guids": _lines(guids.host[source])})
        for number in used:
            name = f"{names[source]} lane {number}"
            groups.append({"name": name, "guids": _lines(guids.host[ends[lane == number]])})
            rules.append({"source": names[source], "destination": name, "lane": number})
    return groups, rules


def _lines(guids: NDArray[np.uint64]) -> list[str]:
    known = [_hex(guid) for guid in guids[guids > 0].tolist()]
    return [", ".join(known[i : i + GUIDS_A_LINE]) for i in range(0, len(known), GUIDS_A_LINE)]


def _hex(guid: int) -> str:
    return f"{guid:#018x}"


def _hosts(build: Build, guids: Guids) -> Iterator[dict[str, Any]]:
    """Host adapters: the node's GUID is the port's less one, as ibsim has it."""
    w = build.wiring
    for v, h in np.argwhere(guids.host > 0).tolist():
        port_guid = int(guids.host[v, h])
        yield {
            "name": w.host_names[v * guids.host.shape[1] + h],
            "guid": _hex(port_guid - 1),
            "port_guid": f"{port_guid:x}",
            "id": _adapter(port_guid),
            "switch": _switch(int(guids.switch[v])),
            "node": w.names[v],
            "port": int(w.host_port[v, h]),
        }


def _switches(build: Build, guids: Guids) -> Iterator[dict[str, Any]]:
    w = build.wiring
    for v, name in nodes(build):
        links = np.flatnonzero(w.far[v] >= 0)
        cables = [
            (port, _switch(int(guids.switch[far])), far_port, w.names[far])
            for port, far, far_port in zip(
                *(column[v, links].tolist() for column in (w.port, w.far, w.far_port)), strict=True
            )
        ]
        cables += [
            (int(w.host_port[v, h]), _adapter(int(guids.host[v, h])), 1, name)
            for h in np.flatnonzero(guids.host[v]).tolist()
        ]
        yield {
            "name": name,
            "guid": _hex(int(guids.switch[v])),
            "digits": f"{int(guids.switch[v]):x}",
            "id": _switch(int(guids.switch[v])),
            "ports": len(w.port_names[int(w.node_type[v])]),
            "cables": [
                {"number": port, "far": far, "far_port": far_port, "name": far_name}
                for port, far, far_port, far_name in sorted(cables)
            ],
        }


def _switch(guid: int) -> str:
    return f"S-{guid:016x}"


def _adapter(port_guid: int) -> str:
    return f"H-{port_guid - 1:016x}"
