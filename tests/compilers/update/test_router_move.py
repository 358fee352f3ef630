"""The rounds of a move on routers: packets arrive in every mixture of every round."""

from ipaddress import ip_address, ip_network

import numpy as np
import pytest

from compilers.targets.devices.route_lines import RouteLine
from compilers.targets.eos.port_names import EOS
from compilers.targets.junos.route_lines import junos_lines
from compilers.targets.routed.static_routes import BuildRouters
from compilers.update.router_move import PrefixRounds, RouterMove
from tests.compilers.update.makers import POLARFLY, quadrics_link
from tests.compilers.update.updates import MINIMAL, build, links_of

STAR = "{family: polarstar, q: 2, supernode: inductive-quad, degree: 3}"


def tables(made):
    """{place: the next switch} of every switch."""
    fabric, wiring = BuildRouters.of(EOS.named(made, "eos"), EOS), made.wiring
    found = []
    for vertex in range(len(wiring.names)):
        far = dict(zip(wiring.port[vertex].tolist(), wiring.far[vertex].tolist(), strict=True))
        ports = made.tables.classes.port[vertex].tolist()
        rows = zip(*(column.tolist() for column in fabric.routes(vertex)), strict=True)
        pairs = ((fabric.prefixes[0][p], far[ports[k]]) for p, k in rows)
        found.append({("main", prefix): ahead for prefix, ahead in pairs})
    return found


def lost(held, made):
    """The pairs of switches that do not reach each other by longest prefix."""
    routes = [{ip_network(prefix): far for (_, prefix), far in one.items()} for one in held]
    lengths = sorted({network.prefixlen for one in routes for network in one}, reverse=True)
    wrong = []
    for end in range(len(held)):
        address = ip_address(made.addressing.network(end).network_address)
        keys = [ip_network((address, n), strict=False) for n in lengths]
        ahead = [next((one[key] for key in keys if key in one), None) for one in routes]
        for start in range(len(held)):
            at, hops = start, 0
            while at != end and at is not None and hops < 9:
                at, hops = ahead[at], hops + 1
            if at != end:
                wrong.append((start, end))
    return wrong


@pytest.mark.parametrize(("topology", "dead"), [(POLARFLY, "quadric"), (STAR, "several")])
@pytest.mark.parametrize("back", [False, True])
def test_every_mixture_delivers(topology, dead, back):
    whole = build(topology)
    links = quadrics_link(whole) if dead == "quadric" else [links_of(whole)[n] for n in (0, 40, 77)]
    pair = [whole, build(topology, MINIMAL, tuple(links))]
    old, new = reversed(pair) if back else pair
    move, before, after = RouterMove.of(old, new), tables(old), tables(new)
    rounds = [move.rounds(v, "", has_rule=False) for v in range(len(before))]

    def standing(vertex, number):
        if number < 0:
            return before[vertex]
        each = rounds[vertex].held_after(before[vertex], after[vertex], number, lambda far, _: far)
        assert number < move.last_round or each == after[vertex]
        return each

    chance, seen = np.random.default_rng(7), 0
    for number in range(move.last_round + 1):
        for _ in range(2):
            held = [standing(v, number - int(chance.integers(2))) for v in range(len(before))]
            seen += sum(one not in (b, a) for one, b, a in zip(held, before, after, strict=True))
            assert not lost(held, new)
    assert seen or topology == POLARFLY
    if topology == POLARFLY and not back:
        sides = before, after
        some = ([sides[bits >> v & 1][v] for v in range(13)] for bits in range(0, 1 << 13, 37))
        assert any(lost(held, new) for held in some), "any order would do"


def test_shares_of_packets_from_hosts():
    """In a VRF they stay to the end; where a rule leads to them they make room."""
    old, new = (
        {("hosts", "10.0.0.0/30"): "a"},
        {("hosts", "10.0.0.0/30"): "b", ("hosts", "10.0.0.4/30"): "c"},
    )
    vrf, with_rule = (
        PrefixRounds({"10.0.0.0/30": 1}, 3, "hosts", has_rule=one) for one in (False, True)
    )
    moved = lambda value, _: value  # noqa: E731
    assert vrf.held_after(old, new, 2, moved) == {**old, ("hosts", "10.0.0.4/30"): "c"}
    assert with_rule.held_after({**old, ("main", "x"): "d"}, new, 0, moved) == {("main", "x"): "d"}
    assert with_rule.held_after(old, old, 0, moved) == old
    assert vrf.held_after(old, new, 3, moved) == with_rule.held_after(old, new, 3, moved) == new


def test_a_row_that_leaves_its_aggregate_does_what_that_did():
    """The aggregate changes in round 1, the row of its own comes in round 3."""
    rounds = PrefixRounds({"10.0.0.0/28": 1, "10.0.0.4/30": 3}, 4, "", has_rule=False)
    route = "set routing-options static route {} next-hop {}\n"
    texts = route.format("10.0.0.0/28", "192.0.2.1"), route.format("10.0.0.0/28", "192.0.2.2")
    own = route.format("10.0.0.4/30", "192.0.2.3")
    old, new = ({one.key: one for one in junos_lines(text)} for text in (texts[0], texts[1] + own))
    for number, wanted in ((0, "192.0.2.1"), (1, "192.0.2.1"), (2, "192.0.2.1"), (3, "192.0.2.3")):
        found = rounds.held_after(old, new, number, RouteLine.for_prefix)
        assert found["main", "10.0.0.4/30"].add == route.format("10.0.0.4/30", wanted).strip()
    assert (
        rounds.held_after(old, new, 1, RouteLine.for_prefix)["main", "10.0.0.0/28"].add in texts[1]
    )
