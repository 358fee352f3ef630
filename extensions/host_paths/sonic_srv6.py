"""SRv6 uSIDs of SONiC: locators, SIDs, and routes to the other switches' locators.

Hosts put packets into an outer IPv6 header whose destination has the uSIDs (SRv6 micro-SIDs, RFC
9800) of a path; the last switch or the host removes this header (*decapsulation*). The numbers are
those of target srv6, which configures the hosts.

`SonicSrv6` is the addition to target sonic: its options and its check. `Srv6Rows` are the rows that
it adds to the configuration of a fabric's switches.
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
from extensions.host_paths.path_sets import DECAPSULATE
from extensions.host_paths.segment_check import check_sonic_segments
from extensions.host_paths.srv6_paths import Srv6Paths
from extensions.host_paths.usid_blocks import (
    UsidBlock,
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
class Srv6Rows:
    """The SRv6 rows of CONFIG_DB, for the switches of a fabric."""

    fabric: P2pFabric
    """The fabric as SONiC's templates see it."""
    paths: Srv6Paths
    """The paths of the build."""
    block: UsidBlock
    """The block of the uSIDs, with the prefixes in it."""
    at_host: bool
    """Whether hosts decapsulate; otherwise their switches do."""

    @classmethod
    def of(cls, fabric: P2pFabric, chosen: Chosen) -> Srv6Rows:
        """The rows of a fabric, with the options of target sonic.

        Raises:
            InputError: there is no IPv6 pool, the block overlaps others, or there are too few
                numbers.
        """
        build, block = fabric.routers.build, required_block(chosen[BLOCK])
        host_pool = build.addressing.ipv6
        problems = []
        if host_pool is None:
            problems.append(
                Problem(
                    key="addressing.ipv6",
                    required="an IPv6 pool: SRv6 carries IPv6 packets",
                    given="none",
                    todo='add one, for instance addressing: {ipv6: "fd00::/48"}, or leave srv6 off',
                )
            )
        for owner, pool in (("hosts", host_pool), (LINKS6, fabric.addresses.pool6)):
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
        return cls(fabric, Srv6Paths.of(build), UsidBlock(block), chosen[SRV6] == AT_HOST)

    def tables(self, vertex: int) -> dict[str, Table]:
        """The locator and the SIDs of a switch as tables of CONFIG_DB."""
        locator = {"prefix": self.block.carrier(self.block.switch(vertex)), **USID_LENGTHS}
        sids = {f"{LOCATOR}|{prefix}": sid for prefix, sid in self._sids(vertex)}
        return {"SRV6_MY_LOCATORS": {LOCATOR: locator}, "SRV6_MY_SIDS": sids}

    def _sids(self, vertex: int) -> Iterator[tuple[str, Entry]]:
        """Yield the SIDs of a switch by prefix: its own, its links', and that to decapsulate."""
        block = self.block
        own_usid = block.switch(vertex)
        yield block.prefix(own_usid), {"action": "uN"}
        # Links are in the order of `Wiring.far`, as target srv6 numbers them, too.
        for rank, link in enumerate(self.fabric.links(vertex).values()):
            entry = {"action": "uA", "interface": link.interface, "adj": link.gateway6}
            yield block.prefix(block.link(rank)), entry
        if not self.at_host:
            yield block.prefix(own_usid, DECAPSULATE), {"action": "uDT46", "decap_vrf": "default"}

    def routes(self, vertex: int) -> Iterator[Route]:
        """Yield the routes to the locators of other switches, and to the uSIDs of own hosts.

        Each is a prefix, a gateway and an interface.
        """
        link_to = self._links_by_far_end(vertex)
        for destination, next_switch in self.paths.locators(vertex):
            link = link_to[next_switch]
            yield self.block.prefix(self.block.switch(destination)), link.gateway6, link.interface
        if self.at_host:
            yield from self._host_routes(vertex)

    def _links_by_far_end(self, vertex: int) -> dict[int, P2pLink]:
        """The links of a switch by the vertex at the far end."""
        far = self.fabric.routers.build.wiring.far[vertex]
        links = self.fabric.links(vertex).values()
        return dict(zip(far[far >= 0].tolist(), links, strict=True))

    def _host_routes(self, vertex: int) -> Iterator[Route]:
        """Yield the routes to the uSIDs of a switch's hosts."""
        build = self.fabric.routers.build
        interface = self.fabric.router(vertex).host_interface
        for host in np.flatnonzero(build.wiring.host_port[vertex]).tolist():
            address: IPv6Address = build.addressing.host6(vertex, host)
            yield self.block.prefix(self.block.host(host)), str(address), interface


class SonicSrv6(Addition[P2pFabric, SonicTables]):
    """SRv6 of SONiC, for hosts that choose among paths."""

    option = SRV6
    capabilities = Capabilities(frozenset({AGGREGATES, INGRESS, UNEQUAL_SHARES, MULTIPATH}))
    hosts_choose_paths = True
    grammar_facts = ("segments",)  # the grammar then reads the tables of locators and SIDs
    options = MappingProxyType(
        {
            SRV6: Option.choice(
                "SRv6 SIDs for hosts of target srv6. The value says who removes the outer header.",
                OFF,
                AT_HOST,
                AT_SWITCH,
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
        rows = Srv6Rows.of(fabric, chosen)
        return lambda vertex: SonicTables(rows.tables(vertex), tuple(rows.routes(vertex)))
