"""Frames that a slow machine drops or holds back arrive all the same; those of a fault do not."""

from mininet_scenarios.traffic.frame_exchange import (
    PATIENCE,
    exchange,
)

FRAMES = [(0, b"one"), (1, b"two"), (0, b"three"), (1, b"silent")]
DUE = [b"one", b"two", b"three", None]


class SlowEnds:
    """Echoes frames to host 9: those of `drops` not before they were sent so often."""

    def __init__(self, drops, strays=()):
        self.drops, self.got, self.sent, self.quiet = dict(drops), list(strays), [], []

    def send(self, frames):
        self.sent.append([data for _, data in frames])
        for _, data in frames:
            self.drops[data] = self.drops.get(data, 0) - 1
            if self.drops[data] < 0:
                self.got.append((9, data))

    def hear(self, patience):
        got, self.got = self.got, []
        if not got:
            self.quiet.append(patience)
        return got


def answer(frame):
    return frame[1]


def test_only_what_is_missing_goes_again_until_it_arrives():
    ends = SlowEnds({b"two": 2, b"three": 1, b"silent": 9})
    heard, times = exchange(ends, FRAMES, DUE, answer)
    assert {data for _, data in heard} == {b"one", b"two", b"three"}
    assert ends.sent[1:] == [[b"two", b"three"], [b"two"]]
    assert times == [1, 3, 2, 1]


def test_what_never_arrives_is_lost_after_the_last_time():
    heard, times = exchange(SlowEnds({b"two": 9}), FRAMES, DUE, answer)
    assert b"two" not in {data for _, data in heard}
    assert times == [1, len(PATIENCE), 1, 1]


def test_other_frames_do_not_pass_for_those_that_are_awaited():
    ends = SlowEnds({b"two": 1}, strays=[(9, b"late"), (9, b"ours")])
    heard, _ = exchange(ends, FRAMES, DUE, answer)
    assert ends.quiet == [PATIENCE[0]]
    assert (9, b"two") in heard


def test_a_frame_that_comes_twice_does_not_stand_for_another():
    """As when the first of two that were sent again came late."""

    class TwiceEnds(SlowEnds):
        late = iter([[(1, b"one"), (1, b"one")], [(1, b"two")]])

        def hear(self, _):
            return next(self.late)

    heard, _ = exchange(TwiceEnds({}), [(0, b"one"), (0, b"two")], [b"one", b"two"], answer)
    assert {data for _, data in heard} == {b"one", b"two"}
