"""SRv6 uSIDs of SONiC: locators, SIDs, and routes to the other switches' locators.

An addition to target sonic. Hosts put packets into an outer IPv6 header whose destination has the
uSIDs (SRv6 micro-SIDs, RFC 9800) of a path; the last switch or the host removes this header
(*decapsulation*). The numbers are those of target srv6, which configures the hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path
from types import MappingProxyType

import numpy as np

from compilers.readers.emitted_report import DifferenceList
from compilers.spec.features import AGGREGATES, INGRESS, MULTIPATH, UNEQUAL_SHARES
from compilers.tables.build import Build
from compilers.targets.addition import Addition
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import OFF, SET, Chosen, Option
from compilers.targets.routed.link_addresses import LINKS6
from compilers.targets.routed.p2p_fabric import P2pFabric
from compilers.targets.routed.p2p_variables import P2pLink, Route
from compilers.targets.sonic.config_db import Entry, Table
from compilers.targets.sonic.target import SonicTables
from extensions.host_paths.path_sets import ADJACENCY, DECAPSULATE, HOST
from extensions.host_paths.segment_check import check_sonic_segments
from extensions.host_paths.srv6_paths import Srv6Paths
from extensions.host_paths.srv6_sids import (
    Usids,
    options_with_block,
    parse_block,
    require_numbers,
    required_block,
)
from extensions.lossless.lossless_addition import LOSSLESS
from inventory.problems import InputError, Problem

SRV6, BLOCK = "srv6", "block"
"""The names of the options."""
AT_HOST, AT_SWITCH = "host", "switch"
"""Who decapsulates: the values of the option `srv6` besides `off`."""
LOCATOR = "fabric"
"""The name of a switch's locator in CONFIG_DB."""
USID_LENGTHS = {"block_len": "32", "node_len": "16", "func_len": "16", "arg_len": "0"}
"""The lengths of the parts of a uSID in bits, as CONFIG_DB has them (F3216)."""


@dataclass(frozen=True, slots=True)
class SonicSrv6:
    """The SRv6 rows of SONiC's configuration, for the switches of a fabric."""

    fabric: P2pFabric
    """The fabric as SONiC's templates see it."""
    paths: Srv6Paths
    """The paths of the build."""
    usids: Usids
    """The uSIDs of its switches."""
    at_host: bool
    """Whether hosts decapsulate, not their switches."""

    @classmethod
    def of(cls, fabric: P2pFabric, chosen: Chosen) -> SonicSrv6:
        """The uSIDs of a fabric, with the options of target sonic.

        Raises:
            InputError: there is no IPv6 pool, the block overlaps others, or there are too few
                numbers.
        """
        build, block = fabric.routers.build, required_block(chosen[BLOCK])
        hosts = build.addressing.ipv6
        problems = []
        if hosts is None:
            problems.append(
                Problem(
                    key="addressing.ipv6",
                    required="an IPv6 pool: SRv6 carries IPv6 packets",
                    given="none",
                    todo='add one, for instance addressing: {ipv6: "fd00::/48"}, or leave srv6 off',
                )
            )
        for owner, pool in (("hosts", hosts), (LINKS6, fabric.addresses.pool6)):
            if pool is not None and pool.overlaps(block):
                problems.append(
                    Problem(
                        key=f"{SET} {BLOCK}",
                        required=f"a block outside the pool of {owner}, {pool}",
                        given=str(block),
                    )
                )
        if problems:
            raise InputError(problems)
        require_numbers(build.tables.switches, build.wiring.host_port.shape[1])
        return cls(fabric, Srv6Paths.of(build), Usids(block), chosen[SRV6] == AT_HOST)

    def tables(self, vertex: int) -> dict[str, Table]:
        """The locator and the SIDs of a switch as tables of CONFIG_DB."""
        locator = {"prefix": str(self.usids.carrier(self.usids.switch(vertex))), **USID_LENGTHS}
        sids = {f"{LOCATOR}|{prefix}": sid for prefix, sid in self._sids(vertex)}
        return {"SRV6_MY_LOCATORS": {LOCATOR: locator}, "SRV6_MY_SIDS": sids}

    def _sids(self, vertex: int) -> Iterator[tuple[str, Entry]]:
        """The SIDs of a switch by prefix: its own, one for each link, and one to decapsulate."""
        usid = self.usids.switch(vertex)
        yield self.usids.prefix(usid), {"action": "uN"}
        for k, link in enumerate(self.fabric.links(vertex).values()):
            entry = {"action": "uA", "interface": link.interface, "adj": link.gateway6}
            yield self.usids.prefix(ADJACENCY + k), entry
        if not self.at_host:
            yield self.usids.prefix(usid, DECAPSULATE), {"action": "uDT46", "decap_vrf": "default"}

    def routes(self, vertex: int) -> Iterator[Route]:
        """Prefix, gateway and interface of the other switches' locators, and of uSIDs of hosts."""
        link_to = self._links_by_far_end(vertex)
        for destination, next_switch in self.paths.locators(vertex):
            link = link_to[next_switch]
            yield self.usids.prefix(self.usids.switch(destination)), link.gateway6, link.interface
        if self.at_host:
            yield from self._to_hosts(vertex)

    def _links_by_far_end(self, vertex: int) -> dict[int, P2pLink]:
        """The links of a switch by the vertex at the far end."""
        far = self.fabric.routers.build.wiring.far[vertex]
        links = self.fabric.links(vertex).values()
        return dict(zip(far[far >= 0].tolist(), links, strict=True))

    def _to_hosts(self, vertex: int) -> Iterator[Route]:
        """The routes to the SIDs of a switch's hosts."""
        build = self.fabric.routers.build
        interface = self.fabric.router(vertex).host_interface
        for host in np.flatnonzero(build.wiring.host_port[vertex]).tolist():
            address: IPv6Address = build.addressing.host6(vertex, host)
            yield self.usids.prefix(HOST + host), str(address), interface


class SonicSegments(Addition[P2pFabric, SonicTables]):
    """SRv6 of SONiC, for hosts that choose among paths."""

    option = SRV6
    capabilities = Capabilities(frozenset({AGGREGATES, INGRESS, UNEQUAL_SHARES, MULTIPATH}))
    hosts_choose_paths = True
    grammar_facts = ("segments",)
    options = MappingProxyType(
        {
            SRV6: Option.choice(
                "SRv6 SIDs for hosts of target srv6. The value says who removes the outer header.",
                *(OFF, AT_HOST, AT_SWITCH),
            ),
            BLOCK: Option(
                "The block of the uSIDs.",
                "fc00::/32",
                "an IPv6 network of 32 bits such as fc00::/32",
                lambda text: parse_block(text) is not None,
            ),
        }
    )

    def options_in(self, plane: int, options: Chosen | None) -> Chosen | None:
        """See `Addition.options_in`."""
        return options_with_block(options, self.options[BLOCK].default, plane)

    def require(self, build: Build, chosen: Chosen) -> None:  # noqa: ARG002
        """See `Addition.require`."""
        if chosen.get(LOSSLESS, OFF) != OFF:
            raise InputError.of(
                key=f"{SET} {LOSSLESS}",
                required=f"{OFF} with {SRV6}: hosts then choose paths that were not proved",
                given=chosen[LOSSLESS],
            )

    def differences(
        self,
        fabric: P2pFabric,
        chosen: Chosen,  # noqa: ARG002
        folder: Path,
        only: Collection[int] | None,
    ) -> DifferenceList | None:
        """See `Addition.differences`: the SIDs of all switches together."""
        return check_sonic_segments(fabric.routers.build, folder) if only is None else None

    def printed(self, fabric: P2pFabric, chosen: Chosen) -> Callable[[int], SonicTables]:
        """See `Addition.printed`."""
        srv6 = SonicSrv6.of(fabric, chosen)
        return lambda vertex: SonicTables(srv6.tables(vertex), tuple(srv6.routes(vertex)))
