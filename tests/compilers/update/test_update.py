"""An update between two builds: every state on the way delivers every packet.

The switches here are programmed by the messages alone (`openflow_switch`), and packets follow what
these say, with every choice of a select group; nothing of the plan is trusted.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compilers.forwarding.single_packets import SinglePackets
from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import repair_tables
from compilers.update.loss import pair_loss
from compilers.update.move_cells import MoveCells
from compilers.update.move_plan import plan
from compilers.update.order import levels
from compilers.update.programs import SwitchPrograms
from compilers.update.slots import change_counts, messages
from compilers.update.update_proof import prove
from tests.compilers.targets.openflow_switch import DROP, MARK_SHIFT, Switch
from tests.compilers.update.makers import replugged
from tests.compilers.update.updates import MINIMAL, Moving, build, grown, links_of

POLICIES = [
    MINIMAL,
    ("minimal", "link"),
    ("minimal", "node"),
    ("compact-valiant", "none"),
    ("compact-valiant", "link"),
]
MARKS = [("spread", "none"), ("spread", "link")]
STAR = "{family: polarstar, q: 2, supernode: inductive-quad, degree: 0}"
ADDRESSED = "addressing: {ipv6: fd00::/48}\n"
SLOW = settings(max_examples=5, suppress_health_check=list(HealthCheck))


def fabric(q):
    return f"{{family: polarfly, q: {q}}}"


@st.composite
def pairs(draw):
    """An old and a new build."""
    topology = draw(st.sampled_from([*(fabric(q) for q in (2, 3, 3)), STAR]))
    links = links_of(build(topology))

    def one():
        policy = draw(st.sampled_from(POLICIES))
        count = draw(st.sampled_from([0, 0, 1, 2])) if topology == fabric(3) else 0
        return build(topology, policy, tuple(draw(st.permutations(links))[:count]))

    old, new = one(), one()
    if topology == fabric(3) and draw(st.booleans()):
        small = build(topology, draw(st.sampled_from(POLICIES)))
        large = grown(small, draw(st.sampled_from(["quadric", "fan"])), 1)
        old, new = draw(st.permutations([small, large]))
    return old, new


def check(moving, hops):
    longest, wrong = moving.worst()
    assert not wrong, wrong[:5]
    assert longest <= hops


@SLOW
@given(pair=pairs(), seed=st.integers(0, 1 << 30), generation=st.integers(0, 1))
def test_every_mixture_delivers(pair, seed, generation):
    update, chance = plan(*pair), Random(seed)  # noqa: S311
    proof = prove(update, seed=seed)
    assert not proof.faults
    assert proof.max_hops <= proof.hop_bound
    moving = Moving(update, generation)
    for round in range(update.rounds):
        nodes = list(moving.nodes)
        chance.shuffle(nodes)
        stop = chance.randrange(len(nodes))
        for place, node in enumerate(nodes):
            moving.advance(node, round)
            if place == stop:
                check(moving, proof.hop_bound + 1)
        check(moving, proof.hop_bound + 1)
    stay = update.nodes.new_vertex >= 0
    assert all(moving.switches[n] == moving.new[n] for n in np.flatnonzero(stay).tolist())


@SLOW
@given(pair=pairs(), seed=st.integers(0, 1 << 30), generation=st.integers(0, 1))
def test_it_can_be_taken_back_from_anywhere(pair, seed, generation):
    update, chance = plan(*pair), Random(seed)  # noqa: S311
    moving, hops = Moving(update, generation), prove(update).hop_bound + 1
    last = chance.randrange(update.rounds)
    for round in range(last + 1):
        nodes = list(moving.nodes)
        chance.shuffle(nodes)
        for node in nodes if round < last else nodes[: chance.randrange(len(nodes))]:
            moving.advance(node, round)
    for round in range(last, -1, -1):
        for node in chance.sample(moving.nodes, len(moving.nodes)):
            if moving.done[node] == round:
                moving.retreat(node)
        check(moving, hops)
    assert all(moving.switches[n] == moving.old[n] for n in moving.nodes)


@SLOW
@given(pair=pairs(), seed=st.integers(0, 1 << 30))
def test_a_packet_on_its_way_arrives(pair, seed):
    """Switches go on with their round while a packet is on a link; a round ends in a pause."""
    update, chance = plan(*pair), Random(seed)  # noqa: S311
    moving, hops = Moving(update), prove(update).hop_bound + 1
    for _ in range(4):
        moving.switches = [switch.copy() for switch in moving.old]
        moving.done = [-1] * len(moving.nodes)
        flights = [_flight(moving, chance) for _ in range(4)]
        waiting = _commits(moving, chance)
        while flights:
            flight = chance.choice(flights)
            if (state := next(flight, None)) is None:
                flights.remove(flight)
                continue
            assert state <= hops
            for _ in range(chance.randrange(len(moving.nodes))):
                if next(waiting, "pause") == "pause":
                    break


def _commits(moving, chance):
    """Each yields once a switch has carried out a round; "pause" between two rounds."""
    for round in range(moving.update.rounds):
        for node in chance.sample(moving.nodes, len(moving.nodes)):
            moving.advance(node, round)
            yield node
        yield "pause"


def _flight(moving, chance):
    """A packet; yields its links so far, a link at a time."""
    (source, entry, sender), (node, port, address) = chance.sample(moving.hosts, 2)
    at, came, mark, hops = source, entry, 0, 0
    while True:
        outcomes = moving.switches[at].outcomes(came, sender, address, mark)
        assert DROP not in outcomes, f"dropped at {at}"
        out = chance.choice(sorted(outcomes, key=str))
        if isinstance(out, tuple):
            assert (at, *out) == (node, port)
            return
        mark, out = divmod(out, 1 << MARK_SHIFT)
        (at, came), sender, hops = moving.cables[at, out], 0, hops + 1
        yield hops


@pytest.fixture
def hard():
    """A pair whose rows must change in order: a quadric's link dies, which is in no triangle.

    Its ends then go by a neighbour that went by them.
    """
    whole = build(fabric(3))
    near = [set(row[row >= 0].tolist()) for row in whole.wiring.far]
    names = whole.wiring.names
    ends = next((u, v) for u in range(13) for v in sorted(near[u]) if not near[u] & near[v])
    return whole, build(fabric(3), MINIMAL, (tuple(names[v] for v in ends),))


def test_rows_in_another_order_lose_packets(hard):
    update = plan(*hard)
    row = np.where(update.row_round > 0, update.last_round - update.row_round, 0).astype(np.uint8)
    wrong = replace(update, row_round=row)
    moving, lost = Moving(wrong), []
    for round in range(wrong.rounds):
        for node in moving.nodes:
            moving.advance(node, round)
            lost += moving.worst()[1]
    assert any("loops" in text or "dropped" in text for text in lost)


def test_alternates_wait_until_all_rows_are_new(hard):
    """A switch that is the first of its round may have an alternate whose old rows come back."""
    old, new = hard[1], build(fabric(3), ("compact-valiant", "none"))
    update = plan(old, new)
    moving, hops = Moving(update), prove(update).hop_bound + 1
    for round in range(update.rounds):
        for node in moving.nodes:
            before = moving.switches[node].copy()
            moving.advance(node, round)
            check(moving, hops)
            moving.switches[node], moving.done[node] = before, round - 1
        for node in moving.nodes:
            moving.advance(node, round)


def test_the_proof_finds_a_wrong_order(hard):
    update = plan(*hard)
    (found,) = levels(update.new, update.difference.fibs, update.difference.compare_cells)
    right = MoveCells.of(update, found, np.ones(13, np.bool_))
    level = np.where(right.level > 0, update.last_round - right.level, 0).astype(np.uint8)
    faults = [
        {
            what
            for last in range(update.last_round + 1)
            for what, where in cells.walk(np.full(13, last, np.uint8))[1].items()
            if where.any()
        }
        for cells in (right, replace(right, level=level))
    ]
    assert faults[0] == set()
    assert "meets an old row behind a new one" in faults[1]


def test_the_same_build_needs_nothing():
    made = build(fabric(3), ("compact-valiant", "link"))
    update = plan(made, made)
    programs = SwitchPrograms(update)
    assert update.is_in_place
    for node in range(13):
        assert not any(change_counts(programs.slots(node)).values())
        assert not any(messages(programs.slots(node), round) for round in range(update.rounds))


def test_protection_alone_changes_in_place():
    old, new = (build(fabric(3), ("compact-valiant", p)) for p in ("none", "link"))
    update = plan(old, new)
    assert (update.is_in_place, update.rounds) == (True, 2)
    found = change_counts(SwitchPrograms(update).slots(0))
    assert not found["routes"]
    assert found["groups"]


@pytest.mark.parametrize("q", [3, pytest.param(4, marks=pytest.mark.long)])
@pytest.mark.parametrize("policy", [MINIMAL, ("compact-valiant", "link")])
def test_a_repair_changes_few_rows_in_place(q, policy):
    """Tables repaired after a failure: the same switches and numbers, O(q) rows."""
    whole = build(fabric(q), policy)
    intact, far = IntactBuild.of(whole), whole.wiring.far
    for u, k in ((7, 2),):
        dead = np.zeros(far.shape, np.bool_)
        dead[u, k] = True
        dead[far[u, k], np.flatnonzero(far[far[u, k]] == u)] = True
        found = repair_tables(intact, dead)
        hurt = replace(whole, tables=found.tables)
        for pair in ((whole, hurt), (hurt, whole)):
            update = plan(*pair)
            assert update.is_in_place
            assert not prove(update).faults
            moving, hops = Moving(update), prove(update).hop_bound + 1
            sent = sum(change_counts(slots)["routes"].changed for slots in moving.slots)
            assert sent == len(found.changed_rows)
            for round in range(update.rounds):
                for node in moving.nodes:
                    moving.advance(node, round)
                    if node % 4 == 1:
                        check(moving, hops)
            assert moving.switches == moving.new


def test_star_with_missing_links_is_ordered():
    """Rows of their own under aggregates, gone and come."""
    whole = build(STAR, MINIMAL, (), ADDRESSED)
    links = links_of(whole)
    hurt = build(STAR, MINIMAL, (links[0], links[9], links[17]), ADDRESSED)
    for pair in ((whole, hurt), (hurt, whole)):
        update = plan(*pair)
        moving, hops = Moving(update), prove(update).hop_bound
        assert not prove(update).faults
        for round in range(update.rounds):
            for node in moving.nodes:
                moving.advance(node, round)
                if node == 5:
                    check(moving, hops)
            check(moving, hops)
        assert moving.switches == moving.new
        for _ in range(update.rounds):
            for node in moving.nodes:
                moving.retreat(node)
        assert moving.switches == moving.old


@pytest.mark.parametrize("turn", [1, -1], ids=["comes", "goes"])
def test_an_address_family_comes_and_goes(turn):
    old, new = [build(fabric(3)), build(fabric(3), MINIMAL, (), ADDRESSED)][::turn]
    moving = Moving(plan(old, new))
    for round in range(moving.update.rounds):
        for node in moving.nodes:
            moving.advance(node, round)
            check(moving, prove(moving.update).hop_bound)
    assert moving.switches == moving.new
    for _ in range(moving.update.rounds):
        for node in moving.nodes:
            moving.retreat(node)
    assert moving.switches == moving.old


def test_programs_of_every_moment_are_what_the_messages_make():
    old, new = build(fabric(3)), build(fabric(3), ("compact-valiant", "link"))
    moving = Moving(plan(old, new))
    for round in range(-1, moving.update.rounds):
        for node in moving.nodes:
            if round >= 0:
                moving.advance(node, round)
            standing = [b for slots in moving.slots[node] for b in slots.held_after(round)]
            assert Switch().apply(standing) == moving.switches[node]


def test_what_is_lost_is_told():
    whole = build(fabric(3))
    (one, other), *_ = links_of(whole)
    hurt = build(fabric(3), MINIMAL, ((one, other),))
    found = pair_loss(plan(whole, hurt))
    assert (found.hosts, found.lost_pairs, found.switches) == ((), 0, ())
    assert [tuple(end.split()[0] for end in cable) for cable in found.cables] == [(one, other)]
    assert found.exposed_pairs == _crossing(whole, one, other)
    assert not found.loses_nothing
    assert pair_loss(plan(hurt, whole)).loses_nothing
    assert pair_loss(plan(whole, build(fabric(3), ("compact-valiant", "link")))).loses_nothing


@pytest.mark.parametrize(
    ("topology", "balance", "protect"),
    [
        (fabric(2), "compact-valiant", "link"),
        (fabric(2), "compact-valiant, adjacent: bounce", "none"),
        (fabric(3), "spread", "link"),
        ("{family: oft, q: 2}", "spread", "none"),
        (fabric(2), "valiant", "none"),
        ("{family: hyperx, sides: 3x3}", "ecmp, transit: ecmp", "link"),
    ],
)
def test_pairs_whose_packets_may_take_a_cable_that_goes(topology, balance, protect):
    """By every path of every pair, one at a time.

    What a switch bounces was taken to go on by the minimal link, and marks to end at once.
    """
    whole = build(topology, (balance, protect))
    ends = np.flatnonzero(whole.topology.endpoints)
    hosts = np.bincount(np.nonzero(whole.wiring.host_port)[0], minlength=len(whole.wiring.far))
    switch = int(ends[2])
    found = _crossing_pairs(whole, {switch, int(whole.wiring.far[switch, 1])}, hosts)
    assert 0 < found < len(ends) ** 2 * hosts.max() ** 2
    assert pair_loss(plan(whole, replugged(whole, switch, 1))).exposed_pairs == found


def _crossing_pairs(whole, link, hosts):
    ends, crossed = np.flatnonzero(whole.topology.endpoints), 0
    for source, destination in permutations(ends.tolist(), 2):
        packets = SinglePackets(whole, destination)
        paths = (
            [path for _, path in packets.intermediate_paths(source)]
            if whole.forwarding.intermediates
            else packets.paths(source)
        )
        taken = any({*step} == link for path in paths for step in pairwise(path.switches))
        crossed += int(taken * hosts[source] * hosts[destination])
    return crossed


def test_packets_over_an_intermediate_that_goes_are_exposed():
    """Those of every pair; only intermediates that stay were looked at."""
    small = build(fabric(3), ("valiant", "none"))
    assert pair_loss(plan(grown(small, "quadric", 1), small)).exposed_pairs == 13 * 12


def test_a_protected_link_may_go():
    policy = ("compact-valiant", "link")
    links = links_of(build(fabric(3)))
    whole = build(fabric(3), policy)
    one = pair_loss(plan(whole, build(fabric(3), policy, tuple(links[:1]))))
    two = pair_loss(plan(whole, build(fabric(3), policy, tuple(links[:2]))))
    assert one.exposed_pairs
    assert one.loses_nothing
    assert two.exposed_pairs > one.exposed_pairs
    assert not two.loses_nothing


def test_renumbered_and_removed_hosts_are_lost():
    small, other = build(fabric(3)), build(fabric(3), MINIMAL, (), "hosts_per_node: 3\n")
    found = pair_loss(plan(small, other))
    assert len(found.hosts) == 13
    assert found.lost_pairs == 13 * 12
    large = grown(small, "quadric", 1)
    found = pair_loss(plan(large, small))
    assert len(found.switches) == len(found.hosts) == 4
    assert found.lost_pairs == 17 * 16 - 13 * 12


def _crossing(made, one, other):
    """Ordered pairs whose minimal path goes over a link, by walking each."""
    link = {made.wiring.names.index(one), made.wiring.names.index(other)}
    paths = [SinglePackets(made, d).minimal_path(s).switches for s in range(13) for d in range(13)]
    return sum(any({u, v} == link for u, v in pairwise(path)) for path in paths)
