"""Traffic between all hosts of q=5 (31 switches, 930 pairs) while all sorts of things are done."""

from __future__ import annotations

import subprocess

import pytest

from compilers.tables.folders.build_folder import load
from tests.controller.makers import POLARFAB
from tests.controller.rollout.makers import EVENTS, FULL, MINIMAL, Site, compiled
from tests.controller.rollout.windows import loses_nothing

pytestmark = [pytest.mark.live, pytest.mark.long]
INTERVALS = 0.1, 0.3, 1.0
"""Seconds between two packets of a pair: the first that the machine carries counts."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Builds: minimal, with alternates and protection, and that one with a rack more."""
    made = []
    for name, routing in (("minimal", MINIMAL), ("full", FULL)):
        made.append(compiled(tmp_path_factory.mktemp(name), routing, q=5))
    larger = tmp_path_factory.mktemp("larger") / "build"
    words = [POLARFAB, "expand", made[1], "--clusters", "quadric:1", "-o", larger]
    subprocess.run(words, check=True)
    return [*made, larger]


@pytest.fixture(scope="module")
def site(folders, tmp_path_factory):
    """All switches of the largest build, cabled, and its controller."""
    with Site(tmp_path_factory.mktemp("site"), folders[-1]) as site:
        yield site


@pytest.mark.parametrize("event", EVENTS)
def test_the_controller_may_go_and_come(site, event):
    loses_nothing(site.engine, INTERVALS, EVENTS[event], hosts=31)


@pytest.mark.parametrize("to", [1, 2], ids=["policy", "expansion"])
def test_a_move_to_another_build(site, folders, to):
    """Where a rate was too high for the machine, back again before the next one is tried."""

    def at(which):
        return load(site.folder).identity == load(folders[which]).identity

    def move(_):
        if at(to):
            site.move(folders[to - 1])
        site.move(folders[to])

    if not at(to - 1):
        site.move(folders[to - 1])
    loses_nothing(site.engine, INTERVALS, move, hosts=31)
