"""The junos target: a device config for Junos (docs/junos.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compilers.readers import router_files
from compilers.readers.emitted_check import Reader
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.features import AGGREGATES, INGRESS, WEIGHTS
from compilers.targets.options import Chosen
from compilers.targets.routed.interfaces import JUNOS
from compilers.targets.routed.junos_ingress import (
    IngressRoutes,
    entering_table,
    ingress_routes,
)
from compilers.targets.routed.p2p_links import P2pTarget, P2pVariables
from compilers.targets.template_variables import shown
from inventory.route_tables.held_routes import RouteTables


@dataclass(frozen=True, slots=True)
class JunosVariables(P2pVariables):
    """The variables of the template; entering4, entering6: the routes of packets from hosts."""

    entering4: IngressRoutes
    entering6: IngressRoutes


class Junos(P2pTarget):
    """Static routes of Junos; those of packets from hosts by filter-based forwarding."""

    name = "junos"
    summary = "a device config for Junos"
    files = dict.fromkeys(("junos.set",), JunosVariables)
    capabilities = Capabilities(frozenset({AGGREGATES, INGRESS, WEIGHTS}))
    interfaces = JUNOS

    def reader(self, chosen: Chosen) -> Reader:  # noqa: ARG002
        """See `Target.reader`."""
        return router_files.junos

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables]:
        """See `Target.routes_held`: with those of packets from hosts."""
        fabric = self.fabric(build, chosen)
        return lambda vertex: fabric.routes_held(vertex) | entering_table(fabric, vertex)

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], JunosVariables]:
        """See `Target.variables`."""
        fabric = self.fabric(build, chosen)

        def of_router(vertex: int) -> JunosVariables:
            ipv4, ipv6 = ingress_routes(fabric, vertex)
            values = shown(fabric.variables(vertex))
            return JunosVariables(**values, entering4=ipv4, entering6=ipv6)

        return of_router
