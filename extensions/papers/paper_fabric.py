"""A network of a paper as it is simulated: its topology, its hosts, and the routes of its packets.

`PaperFabric` compiles the network and has the settings of the simulation that belong to its routes.
Its JSON is the key of the network in the result cache.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import NamedTuple

from compilers.expansion.growth_report import GrowthReport
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build

FARTHEST = 3
"""The distance of switches in the adversarial pattern: the diameter of the networks it is for."""
VALLEY_FAMILIES = ("dragonfly", "megafly")
"""Families whose packets change virtual channels in the papers: in BookSim's `dragonflynew` after a
global link; PolarStar's §9.4 counts the channels. Here the scheme `valley` is used."""


class SchemeRoutes(NamedTuple):
    """How the packets of a network are routed."""

    simulated: Mapping[str, str]
    """Fields of `SimulationSettings`."""
    compiled: Mapping[str, str] = {}
    """The `routing` of the spec with which the network is compiled; empty for the defaults."""


ONE_TABLE_PATH, ALL_SHORTEST_PATHS = {"paths": "table"}, {"paths": "shortest"}
"""Fields of `SimulationSettings`: packets take the one path that the tables have for a pair of
switches, or any shortest path."""
ROUTES = {
    "MIN": SchemeRoutes({"routing": "minimal"}),
    "MIN, all shortest paths": SchemeRoutes({"routing": "shortest", **ALL_SHORTEST_PATHS}),
    "UGAL": SchemeRoutes({"routing": "ugal", **ONE_TABLE_PATH}),
    "UGAL, all shortest paths": SchemeRoutes({"routing": "ugal", **ALL_SHORTEST_PATHS}),
    "UGAL_PF": SchemeRoutes({"routing": "ugal-pf", **ONE_TABLE_PATH}),
    "UGAL_PF, bounces": SchemeRoutes(
        {"routing": "adaptive"},
        compiled={"balance": "compact-valiant", "adjacent": "bounce", "disjoint": "none"},
    ),
}
"""The routes by the name that exhibits show. MIN and UGAL are minimal and adaptive routing; UGAL_PF
is adaptive routing with the detours of Compact Valiant."""


@dataclass(frozen=True, slots=True)
class PaperFabric:
    """A network with hosts, and the routes of its packets.

    The names of the fields are keys of the JSON in the result cache.
    """

    topology: Mapping[str, int | str | None]
    """The family and its parameters, as in a spec."""
    hosts: int
    """The number of hosts at each switch that has hosts."""
    routes: str
    """How packets are routed, one of `ROUTES`."""
    group: int = 0
    """The number of switches in a supernode, group or pod; 0 if the network has none."""
    grown: str = ""
    """The clusters that were added, as for `expand`; "" for none."""

    def build(self) -> Build:
        """The compiled network; the last one is kept in memory."""
        routing = dict(ROUTES[self.routes].compiled)
        spec = {"name": "simulated", "topology": dict(self.topology), "routing": routing}
        build = _compiled(json.dumps(spec))
        return GrowthReport.of_clusters(build, self.grown).build if self.grown else build

    def text(self) -> str:
        """The network as JSON, which `of_text` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> PaperFabric:
        """The network of `text`."""
        return cls(**json.loads(text))

    def title(self) -> str:
        """The network in words, such as `polarfly q=31 16 hosts a switch`."""
        family, *parameters = (
            f"{value}" if name == "family" else f"{name}={value}"
            for name, value in self.topology.items()
        )
        network = " ".join(filter(None, (family, *parameters, self.grown)))
        return f"{network} {self.hosts} hosts a switch"

    def simulated_routing(self) -> dict[str, str]:
        """How packets are routed, as fields of `SimulationSettings`."""
        routing = dict(ROUTES[self.routes].simulated)
        changes_channels = self.topology["family"] in VALLEY_FAMILIES
        return {**routing, "scheme": "valley"} if changes_channels else routing


@lru_cache(maxsize=1)
def _compiled(spec: str) -> Build:
    """The build of a spec, which is JSON."""
    return compile_fabric(load_fabric(json.loads(spec)))
