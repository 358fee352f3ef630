"""The base of router targets whose links have addresses: EOS, NX-OS, Junos, SR Linux, SONiC, NVUE.

Not every system can have one link-local address on all ports, or next hops outside of the network
of their port (docs/targets/routers.md). So every link has two addresses of its own
(`routed.link_addresses`). `p2p_fabric` says which routes a router has in which VRF, and
`p2p_variables` what templates print. Each system's `target.py` derives its class from `P2pTarget`.
An *addition* is configuration that another package adds to a system (`targets.addition`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from compilers.readers.bgp.bgp_files import read_speaker
from compilers.readers.devices.held_routes import RouteTables
from compilers.readers.emitted_check import EmittedCheck, Reader
from compilers.readers.emitted_report import DifferenceList
from compilers.readers.routers.router_files import RouterFolder, read_router
from compilers.spec.features import AGGREGATES, INGRESS, MARKS, MULTIPATH
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Classes
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import OFF, Chosen, Options
from compilers.targets.routed.bgp.bgp_checks import (
    bgp_reader,
    next_hop_problems,
    require_bgp,
    require_no_additions,
    require_no_gtsm,
)
from compilers.targets.routed.bgp.bgp_options import (
    BFD,
    ROUTING,
    SHARING_AGREEMENTS,
    WCMP,
    bgp_agreements,
)
from compilers.targets.routed.interfaces import Interfaces
from compilers.targets.routed.link_addresses import LINK_AGREEMENTS, UNNUMBERED, LinkPlan
from compilers.targets.routed.p2p_fabric import HOSTS_VRF, P2pFabric
from compilers.targets.routed.p2p_variables import P2pVariables
from compilers.targets.routed.router_problems import link_problems
from compilers.targets.routed.vrf_limits import table_limit_problems
from compilers.targets.system_names import hostname
from compilers.targets.target import NO_BFD, Target
from inventory.problems import InputError, Problem, few

ONLY_BGP = {
    BFD: NO_BFD,
    UNNUMBERED: "their next hops are addresses of links",
    WCMP: "they have no weights",
}
"""The options that need eBGP, each with the reason why static routes do not have them."""

P2P_AGREEMENTS: Options = MappingProxyType(
    {**LINK_AGREEMENTS, **bgp_agreements("on", "off"), **SHARING_AGREEMENTS}
)
"""The options on which both ends of a link agree, of systems with addresses on links and eBGP."""


class P2pTarget(Target):
    """A system of routers whose links have addresses."""

    agreements = P2P_AGREEMENTS
    unnumbered = MappingProxyType[str, str]({})
    capabilities = Capabilities(frozenset({AGGREGATES, INGRESS, MARKS, MULTIPATH}))
    host_name = staticmethod(hostname)
    interfaces: ClassVar[Interfaces]
    """How it names its ports."""
    vrf: ClassVar[str] = HOSTS_VRF
    """The VRF of hosts, where packets from hosts share ports; "" on a system that cannot do it."""
    no_resolution_reason: ClassVar[str] = ""
    """Why BGP cannot resolve next hops of the VRF of hosts; "" where it can."""
    leaks_host_routes: ClassVar[bool] = True
    """See `P2pFabric.leaks_host_routes`."""

    @property
    def folder(self) -> RouterFolder:
        """The files of a router, for reading them back by the grammars beside its templates."""
        return RouterFolder(str(self.templates), tuple(self.files))

    def folder_with(self, chosen: Chosen) -> RouterFolder:
        """The files of a router, read with the lines of requested additions as comments."""
        comment_out_additions = tuple(
            addition.commented_out for addition in self.requested_additions(chosen)
        )
        return replace(self.folder, comment_out_additions=comment_out_additions)

    def grammar_facts(self, chosen: Chosen) -> tuple[str, ...]:
        """The names of facts that some lines of its grammars depend on, such as `bgp`.

        The grammars read rendered files back (`router_files.read_router`).
        """
        facts = []
        if chosen.get(ROUTING) == "bgp":
            facts.append("bgp")
        if chosen.get(UNNUMBERED, OFF) != OFF:
            facts.append(UNNUMBERED)
        facts_of_additions = (
            addition.grammar_facts for addition in self.requested_additions(chosen)
        )
        return (*facts, *chain.from_iterable(facts_of_additions))

    def reader(self, chosen: Chosen) -> Reader:
        """See `Target.reader`."""
        folder, facts = self.folder_with(chosen), self.grammar_facts(chosen)
        if chosen.get(ROUTING) == "bgp":
            return bgp_reader(partial(read_speaker, folder, definitions=facts), chosen)
        return partial(read_router, folder, definitions=facts)

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], P2pVariables]:
        """See `Target.variables`."""
        return self.fabric(build, chosen).variables

    def fabric(self, build: Build, chosen: Chosen) -> P2pFabric:
        """The routers of a build.

        Raises:
            InputError: see `P2pFabric.of`.
        """
        vrf = "" if self._hosts_choose_paths(chosen) else self.vrf
        return P2pFabric.of(build, self.interfaces, chosen, vrf, self.leaks_host_routes)

    def _hosts_choose_paths(self, chosen: Chosen) -> bool:
        """Whether hosts choose the paths, so that switches have minimal routes only."""
        return any(addition.hosts_choose_paths for addition in self.requested_additions(chosen))

    def emitted_check(
        self, build: Build, chosen: Chosen, folder: Path, accept: tuple[str, ...]
    ) -> EmittedCheck:
        """See `Target.emitted_check`: without alternates if hosts choose the paths."""
        if self._hosts_choose_paths(chosen):
            classes = Classes.minimal(build.tables.classes.port)
            build = replace(build, tables=replace(build.tables, classes=classes))
        return super().emitted_check(build, chosen, folder, accept)

    def addition_variables(self, fabric: P2pFabric, chosen: Chosen) -> list[Callable[[int], Any]]:
        """For each requested addition a function from a vertex to what templates print there."""
        return [addition.printed(fabric, chosen) for addition in self.requested_additions(chosen)]

    def more_differences(
        self, build: Build, chosen: Chosen, folder: Path, only: Collection[int] | None
    ) -> Iterator[DifferenceList]:
        """See `Target.more_differences`: the differences that requested additions find."""
        for addition in self.requested_additions(chosen):
            differences = addition.differences(self.fabric(build, chosen), chosen, folder, only)
            if differences is not None:
                yield differences

    def check(self, build: Build, options: Chosen | None = None) -> tuple[Build, Chosen]:
        """See `Target.check`.

        Raises:
            InputError: also what needs eBGP, with static routes.
        """
        checked, chosen = super().check(build, options)
        agreement_values = self.agreement_values(build)
        for name, why in ONLY_BGP.items():
            if agreement_values.get(name) == "on" and chosen.get(ROUTING) != "bgp":
                required = f"false with static routes of {self.name}: {why}"
                todo = "remove it, or write `routes: ebgp`"
                raise InputError.of(required, "true", todo, key=CONTROL_KEYS[name])
        if chosen.get(ROUTING) != "bgp":
            require_no_gtsm(build)
        return checked, chosen

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`: also that tables of node types hold the routes of all VRFs.

        Raises:
            InputError: they do not, or the system cannot do what the build asks for.
        """
        has_bgp = chosen.get(ROUTING) == "bgp"
        requested = self.requested_additions(chosen)
        if has_bgp:
            require_no_additions(requested, chosen)
            require_bgp(build, self.name, chosen, self.no_resolution_reason)
        for addition in requested:
            addition.require(build, chosen)
        capabilities = next(filter(None, (addition.capabilities for addition in requested)), None)
        if capabilities:
            # The addition says what the system can do with it, also how many routes it can hold.
            capabilities.require(build, self.name)
            return
        if not has_bgp:
            super().require(build, chosen)
        if problems := list(table_limit_problems(build, self.name, has_bgp)):
            raise InputError(few(problems))

    def pool_problems(self, build: Build, chosen: Chosen) -> Iterator[Problem]:
        """See `Target.pool_problems`."""
        yield from link_problems(LinkPlan.of(build, chosen))
        yield from next_hop_problems(build, chosen)

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables]:
        """See `Target.routes_held`."""
        return self.fabric(build, chosen).routes_held
