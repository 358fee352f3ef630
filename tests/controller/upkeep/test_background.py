"""Long work in the loop that hears switches."""

import gc
import weakref
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

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


def freed():
    """Whether a build that was left is freed by a collection, and with the next build."""
    build = Build()
    held = weakref.ref(build)
    freeze()
    del build
    gc.collect()
    alone = held() is None
    freeze()
    return alone, held() is None


def test_a_build_that_was_left_is_freed_with_the_next():
    """Each build that the fabric had held was kept for ever.

    In a process of its own, which has little else to look at.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        assert process.submit(freed).result() == (False, True)
