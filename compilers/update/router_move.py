"""The rounds of a move on routers: which prefix of a switch changes when.

What comes in are two builds, and the routes of a router before and after the move; what goes out
are the routes that the router holds after a round (`PrefixRounds.held_after`). `polarfab push`
calls it.

The rounds are those of `move_plan`, which hold for any switch that forwards by prefix: a row
changes after the rows that its packets meet next. Routes that are no row of the tables, such as the
route that discards unknown destinations, and those to the switch's own hosts, come first and go
last.

Packets from hosts are looked up in a routing table of their own, whose routes balance them over
several next hops. How this table is reached decides when its routes change:

- If the ports of hosts are in a VRF with this table, its old routes stay until the last round. Any
  next hop will do for the first link, as the packet is in transit from there on, and routers may
  send it back over its ingress link.
- If a policy rule leads to this table (FRR), a packet without a route there goes on to the main
  table. The routes that change are removed before the first round and added in the last one.
  Meanwhile these packets keep to the minimal port. They have to where repair looks at the ingress
  port: as long as a row on the path behind an alternate is old, a packet might come back over its
  ingress link, and a switch would take it for a packet that a repair has sent back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.readers.devices.held_routes import RouteKey
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.update.move_plan import Update, plan

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class PrefixRounds:
    """The rounds in which the routes of one switch change, from 0 to `last_round`."""

    rounds: Mapping[str, int]
    """By prefix as text, for every row of the old or the new tables, the round in which it
    changes."""
    last_round: int
    """The number of the last round."""
    host_table: str
    """The routing table that is looked up for packets from hosts."""
    has_rule: bool
    """Whether a policy rule leads to that table, so that packets without a route there go on to the
    main table."""

    def held_after(
        self,
        old: Mapping[RouteKey, Value],
        new: Mapping[RouteKey, Value],
        round: int,
        for_prefix: Callable[[Value, str], Value],
    ) -> dict[RouteKey, Value]:
        """The routes that the switch holds after a round.

        Args:
            old: the routes before the move, by table and prefix.
            new: the routes after the move.
            round: the round.
            for_prefix: turns the route of an aggregate into the same route of another prefix.
        """
        # After the last round the switch holds the new routes alone.
        held = dict(old) if round < self.last_round else {}
        for key in dict.fromkeys((*old, *new)):
            table, prefix = key
            if round >= self._round(key, old):
                held.pop(key, None)
                if key in new:
                    held[key] = new[key]
            elif key not in old and (covering := self._covering_row(prefix)):
                # Until its round, a new prefix has a route that does what its old aggregate does.
                if (table, covering) in old:
                    held[key] = for_prefix(old[table, covering], prefix)
            elif self.has_rule and table == self.host_table and old.get(key) != new.get(key):
                # Without a route in the table of hosts, packets go on to the main table.
                held.pop(key, None)
        return held

    def _round(self, key: RouteKey, old: Mapping[RouteKey, Value]) -> int:
        """The round in which the route of a table and a prefix changes.

        A route of the table of hosts, and a route that is no row of the tables, have no round of
        their own: they are added in round 0 and removed in the last round.
        """
        table, prefix = key
        is_old = key in old
        if table == self.host_table:
            return self.last_round if is_old or self.has_rule else 0
        return self.rounds.get(prefix, self.last_round if is_old else 0)

    def _covering_row(self, prefix: str) -> str:
        """The longest prefix with a round that covers a prefix; "" if there is none."""
        network = ip_network(prefix)
        for length in range(network.prefixlen - 1, -1, -1):
            if (covering := str(network.supernet(new_prefix=length))) in self.rounds:
                return covering
        return ""


@dataclass(frozen=True, slots=True)
class RouterMove:
    """A move of routers from one build to another."""

    update: Update
    """The rounds of the move."""
    old_texts: tuple[list[str], ...]
    """The texts of all prefixes of the old build by number: IPv4, and IPv6 if there is any."""
    new_texts: tuple[list[str], ...]
    """The texts of all prefixes of the new build by number, in the same way."""

    @classmethod
    def of(cls, old: Build, new: Build) -> RouterMove:
        """Plan the move.

        Raises:
            InputError: no order of rows is safe.
        """
        return cls(plan(old, new), old.addressing.prefix_texts(), new.addressing.prefix_texts())

    @property
    def last_round(self) -> int:
        """The last round."""
        return self.update.last_round

    def old_vertex(self, vertex: int) -> int:
        """The vertex in the old build of a switch of the new build; negative if there is none."""
        nodes = self.update.nodes
        return int(nodes.old_vertex[nodes.node_of_new[vertex]])

    def rounds(self, vertex: int, host_table: str, has_rule: bool) -> PrefixRounds:
        """The rounds in which the routes of a switch of the new build change.

        Args:
            vertex: the switch.
            host_table: the routing table that is looked up for packets from hosts.
            has_rule: whether a rule leads to that table.
        """
        update, old_vertex = self.update, self.old_vertex(vertex)
        round_by_prefix: dict[str, int] = {}
        if old_vertex >= 0:
            old_prefixes = _row_prefixes(update.old, old_vertex).astype(np.int64)
            # IPv4 prefixes come first, then those of IPv6, if there are any.
            for texts, v6 in zip(self.old_texts, (False, True), strict=False):
                rounds = update.removal_rounds(vertex, old_prefixes, v6).tolist()
                round_by_prefix |= _by_text(texts, old_prefixes, rounds)
        # Rows that are in both builds change rather than go, so these rounds replace the others.
        new_prefixes = _row_prefixes(update.new, vertex)
        rounds = update.change_rounds(vertex, new_prefixes).tolist()
        for texts in self.new_texts:
            round_by_prefix |= _by_text(texts, new_prefixes, rounds)
        return PrefixRounds(round_by_prefix, self.last_round, host_table, has_rule)


def _row_prefixes(build: Build, vertex: int) -> NDArray[np.int32]:
    """The prefix numbers of the rows that a switch has, int32[n]."""
    routes = build.tables.routes
    exists = routes.egress[vertex] < no_route(routes.egress)
    prefixes: NDArray[np.int32] = routes.prefixes(vertex)[exists]
    return prefixes


def _by_text(
    texts: Sequence[str], prefixes: NDArray[np.integer], rounds: Sequence[int]
) -> dict[str, int]:
    """The round of each of n rows, by the text of its prefix.

    Args:
        texts: the texts of all prefixes of a build, by number.
        prefixes: int[n], the prefix number of each row.
        rounds: n rounds.
    """
    return {texts[prefix]: round for prefix, round in zip(prefixes.tolist(), rounds, strict=True)}
