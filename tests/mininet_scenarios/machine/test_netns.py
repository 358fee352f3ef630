"""Waiting for a condition in the namespaces of a fabric."""

from __future__ import annotations

import time

import pytest

from mininet_scenarios.machine.netns import until


def test_a_dear_check_leaves_the_core_to_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Routers were asked for their routes by six programs, 20 ms after the last six."""
    now, rests, takes = [0.0], list[float](), iter((0.5, 0.001, 0.5))

    def check() -> bool:
        now[0] += next(takes)
        return len(rests) == 2

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", rests.append)
    until(check, "routes", 60.0)
    assert rests == [1.0, 0.02]
