"""Long work in the loop that hears switches."""

from controller.upkeep.background import SLICE, Slices


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
