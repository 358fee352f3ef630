"""The opensm target: what OpenSM's `file` routing engine and QoS need (docs/targets/opensm.md).

It writes the forwarding tables of the whole fabric, the settings and the QoS policy of OpenSM, and
descriptions of the fabric for the simulator ibsim and the checker ibdm.

A *LID* is the address of a port in the subnet. With `lmc` a host has several LIDs, and each has its
own routes, its *LID layer* (`lid_layers`). A *lane* is the virtual lane on which a pair of switches
sends, so that no deadlock can occur. Lanes are the `Layers` of `extensions.lossless.layers`, as
InfiniBand names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from compilers.families import polarstar
from compilers.readers.emitted_report import EmittedReport
from compilers.spec.features import AGGREGATES, CHANNELS
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import Chosen, Option
from compilers.targets.rendering.renderer import Renderer
from compilers.targets.target import Progress, Target
from compilers.topology import polarity
from extensions.infiniband import ibnetdiscover, lfts
from extensions.infiniband.guids import Guids
from extensions.infiniband.layer_routes import UNSET
from extensions.infiniband.lft_tables import LftTables
from extensions.infiniband.lid_layers import LidLayers, lid_layers
from extensions.infiniband.star_layers import MOST_SWITCHES
from extensions.infiniband.star_paths import LAYERS
from extensions.infiniband.subnet_check import check_subnet
from extensions.infiniband.subnet_variables import (
    HostVariables,
    LaneRule,
    SubnetPortGroup,
    SwitchVariables,
    host_variables,
    policy_variables,
    switch_variables,
    system_files,
)
from extensions.lossless.layers import Layers as Lanes
from extensions.lossless.layers import deadlock_free_layers
from inventory.problems import InputError, Problem

LANES = (1, 2, 4, 8, 15)
"""How many data lanes a port can run (InfiniBand Architecture Specification, volume 1, 3.5.7)."""
MOST_SWITCH_PORTS = 254
"""The most ports of a switch in InfiniBand."""


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
    groups: list[SubnetPortGroup]
    """The port groups of the QoS policy: `name`, and `guids` in lines."""
    rules: list[LaneRule]
    """The rules of the QoS policy: `source`, `destination` and `lane`."""
    switches: list[SwitchVariables]
    """`name`, `guid`, `digits`, `id`, `system` and `ports` of each switch, and its `cables`, each
    with `number`, `far`, `far_port`, `name`, `peer` and `system`."""
    hosts: list[HostVariables]
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
                "2^lmc LIDs for every host, each with paths of its own; PolarStar: 1",
                "0",
                "1",
                "2",
                "3",
            ),
            "lanes": Option.choice("with lmc: how many data lanes ports can run", "8", "4", "2"),
        }
    )

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], OpensmVariables]:
        """See `Target.variables`."""
        guids = _guids(build, chosen)
        _require_limits(build, chosen)
        lid_layering = _lid_layers(build, chosen)
        lanes = lid_layering.lanes if lid_layering else deadlock_free_layers(build)
        _require_lanes(lanes, chosen)
        policy = policy_variables(build, guids, lanes)
        values = OpensmVariables(
            identity=build.identity,
            folder=chosen["folder"],
            lmc=int(chosen["lmc"]),
            lids=1 << int(chosen["lmc"]),
            lanes=lanes.count,
            max_vls=min(n for n in LANES if n >= lanes.count),
            arbitration=",".join(f"{lane}:64" for lane in range(lanes.count)),
            sl2vl=",".join(str(sl if sl < lanes.count else 0) for sl in range(16)),
            groups=policy.groups,
            rules=policy.rules,
            switches=list(switch_variables(build, guids)),
            hosts=list(host_variables(build, guids)),
        )
        return lambda _: values

    def write_fabric(
        self, renderer: Renderer, build: Build, chosen: Chosen, out: Path, progress: Progress
    ) -> None:
        """See `Target.write_fabric`."""
        renderer.refuse_template(lfts.LFTS)
        super().write_fabric(renderer, build, chosen, out, None)
        for name, text in system_files(build):
            renderer.write_bytes(out, f"{name}.ibnl", [text])
        lid_layering = _lid_layers(build, chosen)
        layer_tables = lid_layering.tables if lid_layering else ()
        tables = LftTables(build, _guids(build, chosen), layer_tables)
        renderer.write_bytes(out, lfts.LFTS, tables.blocks(progress))


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
