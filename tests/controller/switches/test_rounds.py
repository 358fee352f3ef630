"""Rounds of changes: what follows an answer, without a fabric."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from controller.switches.conversation import Outcome
from controller.switches.rounds import Rounds

TIMEOUTS = 1000


class OneSwitch:
    """A fabric of one switch, whose changes wait to be answered."""

    def __init__(self) -> None:
        self.changes: list[Any] = []
        talk = SimpleNamespace(change=lambda _, done: self.changes.append(done))
        self.present = {0: SimpleNamespace(slow=False, touched=lambda: None, talk=talk)}
        self.clock = self.heard = lambda: 0.0


def test_a_switch_that_gives_up_again_and_again_gets_its_round_again() -> None:
    """As long as it does so the next round waits."""
    fabric, ends = OneSwitch(), list[str]()

    def answered(vertex: int, outcome: Outcome) -> None:
        if not outcome.committed:
            rounds.also([(vertex, [b"again"])])

    rounds = Rounds(fabric, answered, lambda: ends.append("all"))  # type: ignore[arg-type]
    rounds.send([[(0, [b"first"])], [(0, [b"second"])]])
    for _ in range(TIMEOUTS):
        fabric.changes.pop()(Outcome(False))
    assert (rounds.number, len(fabric.changes), ends) == (1, 1, [])
    fabric.changes.pop()(Outcome(True))
    assert (rounds.number, len(fabric.changes)) == (2, 1)
    fabric.changes.pop()(Outcome(True))
    assert (rounds.busy, rounds.sent, ends) == (False, {}, ["all"])


def test_what_was_stopped_waits_for_what_was_sent() -> None:
    fabric, ends = OneSwitch(), list[str]()
    rounds = Rounds(fabric, lambda *_: None, lambda: ends.append("all"))  # type: ignore[arg-type]
    rounds.send([[(0, [b"first"])], [(0, [b"second"])]])
    rounds.stop()
    assert rounds.busy
    fabric.changes.pop()(Outcome(True))
    assert (rounds.busy, fabric.changes, ends) == (False, [], ["all"])


def test_what_fails_while_it_is_made_holds_up_no_later_round() -> None:
    """Rounds that are not waited for without end would never have ended: nothing was repaired."""
    fabric, ends = OneSwitch(), list[str]()
    finished = lambda: ends.append("all")  # noqa: E731
    rounds = Rounds(fabric, lambda *_: None, finished, patience=5.0)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        rounds.send([((vertex, [b"%d" % (1 // vertex)]) for vertex in (0,)), [(0, [b"second"])]])
    rounds.tick()
    assert (rounds.number, len(fabric.changes), rounds.busy) == (2, 1, True)
    fabric.changes.pop()(Outcome(True))
    assert (rounds.busy, ends) == (False, ["all"])
