"""Orders of ports against the rule said link by link."""

from typing import Any

import numpy as np
import pytest

from compilers.routing.port_ranking import ranked_ports


def by_rule(port: Any, own: int, usable: Any, before: Any, count: int) -> list[int]:
    """The first usable ports round the switch after its own link, those `before` first."""
    links = len(port)
    turn = [(own + 1 + step) % links for step in range(links)]
    first = [k for k in turn if usable[k] and before[k]]
    then = [k for k in turn if usable[k] and not before[k]]
    found = [int(port[k]) for k in first + then][:count]
    return found + [0] * (count - len(found))


@pytest.mark.parametrize("links", [1, 8, 65])
def test_ports_are_ranked_by_turns(links: int) -> None:
    random = np.random.default_rng(links)
    port = np.array([random.permutation(links) + 1 for _ in range(3)], np.int32)
    own = random.integers(links, size=(3, 4))
    minimal = np.take_along_axis(port, own, axis=1)
    for share in (0, 0.02, 0.9):
        usable = random.random((3, 4, links)) < share
        before = random.random((3, 4, links)) < 0.2
        for first in (before, None):
            found = ranked_ports(usable, minimal, port, 3, first)
            known = before if first is not None else np.zeros_like(before)
            rule = [
                [by_rule(port[s], own[s, c], usable[s, c], known[s, c], 3) for c in range(4)]
                for s in range(3)
            ]
            assert found.tolist() == rule
