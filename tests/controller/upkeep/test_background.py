"""Long work in the loop that hears switches."""

import gc
import weakref

from controller.upkeep.background import SLICE, Slices, freeze


def test_other_work_goes_on_once_a_slice_is_over():
    """A look at a thousand switches held echo replies for .1 s."""
    now, rests = [0.0], []

    def rest():
        rests.append(now[0])
        now[0] += 1.0  # what others take is no work of ours

    slices = Slices(rest, lambda: now[0])
    for _ in range(10):
        now[0] += SLICE * 0.4
        slices()
    assert len(rests) == 3
    assert rests[0] >= SLICE


class Build:
    """What refers to itself: only a garbage collection frees it."""

    def __init__(self):
        self.itself = self


def test_a_build_that_was_left_is_freed_with_the_next():
    """Each build that the fabric had held was kept for ever."""
    build = Build()
    held = weakref.ref(build)
    freeze()  # which stays: what was collected of tests is frozen, too, as in `conftest`
    del build
    gc.collect()
    assert held(), "no collection looks at what stays"
    freeze()
    assert held() is None
