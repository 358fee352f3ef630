"""Collectives: complete, in their order, and in the time that formulas give."""

from __future__ import annotations

import numpy as np
import pytest

from compilers.tables.build import Build
from extensions.simulation import completion_time as time_on
from extensions.simulation.chosen_settings import settings_for
from extensions.simulation.collective_completion import (
    BLOCKS,
    COLLECTIVES,
    FLIT,
    CompletionTime,
    completion_time,
)
from extensions.simulation.host_messages import HostMessages
from inventory.problems import InputError
from polarfab.fabric import Fabric

PACKET = 4 * FLIT


@pytest.fixture(scope="module")
def q7() -> Build:
    return Fabric.from_spec({"name": "lab", "topology": {"family": "polarfly", "q": 7}}).build


def took(build: Build, collective: str, size: int) -> CompletionTime:
    return completion_time(build, collective, size, 1, settings_for(build))


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("hosts", [2, 12, 13])
def test_messages_in_order_all_arrive(collective: str, hosts: int) -> None:
    made = COLLECTIVES[collective](hosts)
    messages = HostMessages.of(np.arange(hosts), *made[:4], 1)
    # The order is carried out by hand: every host does what it can until none can do more.
    waits, head, sent = messages.awaited.copy(), messages.next_message.copy(), 0
    while able := [
        h for h in range(hosts) if head[h] < messages.end_message[h] and not waits[head[h]]
    ]:
        for host in able:
            after = messages.dependent[head[host]]
            waits[after] -= after >= 0
            head[host] += 1
            sent += 1
    assert sent == len(made.source)


def test_a_tree_takes_its_depth_on_an_idle_network(q7: Build) -> None:
    # 8 cycles and 3 a link for each of 2 · 5 levels, with 1 or 2 links each; a parent sends to two
    # children one after the other, 4 cycles a packet.
    found = took(q7, "tree-allreduce", 1)
    assert found.messages == 2 * 56
    assert found.cycles is not None
    assert 10 * 11 <= found.cycles <= 10 * 14 + 5 * 4 + 12


def test_more_in_a_message_takes_as_much_longer(q7: Build) -> None:
    small, large = (took(q7, "sweep3d", size * PACKET) for size in (8, 16))
    assert small.messages == 4 * BLOCKS * (2 * 19 + 3 * 18)  # a grid of 3 by 19
    assert (small.cycles, large.cycles) != (None, None)
    assert large.cycles / small.cycles == pytest.approx(2, rel=0.15)


def test_all_to_all_is_bound_by_the_hosts_links(q7: Build) -> None:
    found = took(q7, "all-to-all", 16 * PACKET)
    assert found.least == 56 * 16 * 4
    assert found.least <= found.cycles <= 2.5 * found.least


@pytest.fixture(scope="module")
def repairing() -> Fabric:
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 3}}
    return Fabric.from_spec({**spec, "routing": {"protect": "link"}})


def test_a_link_that_is_down_from_the_start_costs_time_and_no_packet(repairing: Fabric) -> None:
    never = [("0-1", 10**6)]  # with the channels that failures take
    whole = time_on(repairing, "all-to-all", 4 * PACKET, 2, fail=never)
    far = repairing.build.wiring.far
    for a, b in ((0, int(far[0, 0])), (5, int(far[5, 0]))):
        broken = time_on(repairing, "all-to-all", 4 * PACKET, 2, fail=[(f"{a}-{b}", 0)])
        assert broken.lost == 0
        assert whole.cycles < broken.cycles < 2 * whole.cycles


def test_a_collective_that_misses_a_packet_does_not_end(repairing: Fabric) -> None:
    far = repairing.build.wiring.far
    ends = f"5-{far[5, 0]}"
    found = time_on(repairing, "all-to-all", 4 * PACKET, 4, fail=[(ends, 101)])
    assert 0 < found.lost <= 4  # what two directions hold
    assert (found.cycles, found.seconds) == (None, None)
    dead = time_on(repairing, "tree-allreduce", PACKET, 2, fail=[("12", 0)])
    assert dead.lost > 0
    assert dead.cycles is None


def test_links_may_take_longer_than_a_silence() -> None:
    """It ended with no packet lost when nothing had moved for 2,000 cycles."""
    fabric = Fabric.from_spec({"name": "lab", "topology": {"family": "polarfly", "q": 2}})
    times = [time_on(fabric, "tree-allreduce", FLIT, 1, link=link).cycles for link in (500, 2_500)]
    assert times[0] is not None
    assert times[1] == times[0] + 8 * 2_000


def test_too_many_messages_are_refused(q7: Build) -> None:
    with pytest.raises(InputError, match="at most 8,388,608 messages"):
        completion_time(q7, "all-to-all", 1, 100, settings_for(q7))


def test_a_sweep_has_a_grid_of_as_many_rows_as_asked(q7: Build) -> None:
    """57 hosts: waves cross 3 rows and 19 columns, or 19 rows and 3 columns."""
    settings = settings_for(q7)
    flat, steep = (completion_time(q7, "sweep3d", 1, 1, settings, rows) for rows in (3, 19))
    assert flat == completion_time(q7, "sweep3d", 1, 1, settings)
    assert flat.messages == steep.messages
    assert flat.cycles != steep.cycles
    for collective, rows in (("sweep3d", 4), ("tree-allreduce", 3)):
        with pytest.raises(InputError, match=f"a divisor of 57, given {rows} rows"):
            completion_time(q7, collective, 1, 1, settings, rows)
