"""The state of a fabric in words: why a link is dead."""

from dataclasses import replace

import numpy as np
import pytest

from controller.state import Overview, State
from controller.switches.events import LinkDown, LinkReused, LinkSuppressed, LinkUp
from controller.switches.session import LiveFabric
from tests.compilers.fabrics import polarfly_build
from tests.controller.makers import loaded
from tests.controller.management.test_alerts import Ports

DOWN = "down, which an earlier process told"
"""In place of an event: the link is down."""


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([], "down since before"),
        (["port down"], "port down"),
        (["port down", LinkSuppressed], "port down"),
        (["port down", LinkSuppressed, LinkUp], "flaps"),
        ([LinkSuppressed], "flaps"),
        ([LinkSuppressed, DOWN], "down since before"),
        (["port down", LinkSuppressed, LinkReused], "port down"),
        (["drained", "port down"], "port down"),
        (["drained", "port down", "drained"], "drained"),
    ],
)
def test_a_dead_link_says_why_traffic_avoids_it_now(events, reason):
    """Of a link that flapped, `status` said nothing; of a drained one, its port might be down."""
    build = replace(polarfly_build(3), identity="0123456789abcdef")
    wiring = build.wiring
    dead = np.zeros(wiring.far.shape, bool)
    dead[0, 0] = True
    far = int(wiring.far[0, 0])
    back = wiring.far[far].tolist().index(0)
    ends = [
        (wiring.names[vertex], wiring.port_name(vertex, int(wiring.port[vertex, link])))
        for vertex, link in ((0, 0), (far, back))
    ]
    link = [*ends[0], *ends[1]]
    fabric = LiveFabric(loaded(build), lambda *_: ("type", "code"))
    ports = Ports(dead, np.zeros(13, bool))
    name = "{} {} to {} {}".format(*link)
    links = {
        "suppressed": [name] if LinkSuppressed in events else [],
        "down": [name] if DOWN in events else [],
    }
    overview = Overview(lambda: replace(State.of(fabric, ports), links=links))
    for event in events:
        if event is DOWN:
            continue  # an earlier process told it
        if event is LinkSuppressed:
            overview.happened(LinkSuppressed(*link, 15.0))
        elif isinstance(event, str):
            overview.happened(LinkDown(*link, event))
        else:
            overview.happened(event(*link))
    (dead_link,) = overview.state_for_page()["links"]
    assert dead_link["reason"] == reason
