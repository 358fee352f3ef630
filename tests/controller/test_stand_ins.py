"""Stand-in switches hold what they are given, and report it as the controller reads it."""

from dataclasses import replace

import numpy as np

from compilers.targets.openflow import group_and_flow_bytes as rows
from compilers.targets.openflow.bundled_blocks import flow_deletions
from compilers.targets.openflow.encoder import Encoder
from compilers.targets.openflow.protocol import Multipart
from controller.openflow import multipart
from controller.switches import reconcile
from controller.switches.conversation import COMMIT, OPENING
from controller.switches.switch import CONTENT
from tests.compilers.routed import routed
from tests.controller.stand_ins import StandIn

BUILD = replace(routed(q=3, spread=True, protect="link"), identity="0123456789abcdef")


def say(switch, *parts):
    """Answers to these messages, which come cut into pieces."""
    data, rest, said = b"".join(parts), b"", []
    for place in range(0, len(data), 777):
        answers, rest = switch.hear(rest + data[place : place + 777])
        said += [one for answer in answers for one in answer]
    assert not rest
    return said


def held(switch):
    def read(kind):
        replies = say(switch, multipart.request(kind, 7, CONTENT[kind]))
        assert [multipart.part(reply)[2] for reply in replies][-1:] == [True]
        return b"".join(multipart.part(reply)[1] for reply in replies)

    return reconcile.held(read(Multipart.FLOW), read(Multipart.GROUP_DESC))


def test_a_switch_holds_what_bundles_have_left():
    switch, program = StandIn(1, [1, 2]), Encoder(BUILD).program(4)
    say(switch, OPENING, *program.parts)
    assert held(switch).blocks == ()  # nothing is carried out before the commit
    say(switch, COMMIT, rows.barrier(0))
    assert reconcile.difference(program, held(switch)).parts == ()
    assert switch.held == sum(map(len, (*program.groups, *program.flows)))

    routes = max(program.flows, key=len)
    first, second, *_ = np.split(routes, [2, 4])
    say(switch, OPENING, flow_deletions(second).tobytes(), first.tobytes(), COMMIT)
    found = reconcile.difference(program, held(switch))
    assert (found.added, found.changed, found.removed) == (2, 0, 0)
    say(switch, OPENING, *found.parts, COMMIT)
    assert reconcile.difference(program, held(switch)).parts == ()
    assert np.concatenate([block.ravel() for block in switch.rows]).dtype == np.uint8
