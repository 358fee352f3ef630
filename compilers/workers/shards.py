"""The interface of parallel work: a function of shared data is applied to many small pieces.

For example, the proof follows packets to blocks of destinations: the shared data is a build, and a
piece is a block. Three classes have the interface `Workers`: `ThisProcess` here, `LocalProcesses`
for the cores of this machine, and `DaskCluster` for other machines. The results are the same with
each of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import accumulate, islice
from typing import ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

G = TypeVar("G")
"""The type of the shared data."""
P = TypeVar("P")
"""The type of a piece."""
T = TypeVar("T")
"""The type of a result."""
Block = NDArray[np.int64]
"""Numbers of nodes that are worked on together."""


class Workers(Protocol):
    """Processes that apply a function to pieces."""

    remote: ClassVar[bool]
    """Whether shared data is sent to other machines, so that it has to be pickled."""

    def over(
        self,
        prepare: Callable[[G], Callable[[P], T]],
        shared_data: G,
        pieces: Sequence[P],
        at_once: int = 1,
        least: int = 2,
    ) -> Iterator[T]:
        """Yield prepare(shared_data)(piece) for all pieces, in their order, as they are done.

        Args:
            prepare: called once in each process; returns the function that is applied to pieces.
                What this function changes in memory is lost.
            shared_data: what all pieces need, such as a build.
            pieces: small values.
            at_once: the number of pieces that a process takes together.
            least: with fewer pieces than this, local processes cost more than they save, and all
                work is done in this process. A cluster does not look at it.

        Raises:
            Any exception that the function raises; pieces that are under way are dropped then.
        """


class ThisProcess:
    """Does all work in this process, one piece after the other."""

    remote: ClassVar[bool] = False
    """Shared data stays in this process."""

    def over(
        self,
        prepare: Callable[[G], Callable[[P], T]],
        shared_data: G,
        pieces: Sequence[P],
        at_once: int = 1,  # noqa: ARG002
        least: int = 2,  # noqa: ARG002
    ) -> Iterator[T]:
        """Yield the results of all pieces (`Workers.over`)."""
        return map(prepare(shared_data), pieces)


THIS_PROCESS = ThisProcess()
"""The default of parameters that take workers."""


def in_blocks(numbers: Block, step: int) -> list[Block]:
    """Cut numbers of nodes into blocks, with `step` in each but the last."""
    return [numbers[first : first + step] for first in range(0, len(numbers), step)]


def reported(
    results: Iterable[T], blocks: Sequence[Sized], progress: Callable[[int, int], None] | None
) -> Iterator[T]:
    """Yield the results of blocks, and report progress after each.

    Args:
        results: one for each block, in order.
        blocks: the blocks, whose sizes count as progress.
        progress: called with how much is done, and how much there is; None for no reports.
    """
    count = sum(map(len, blocks))
    for result, finished in zip(results, accumulate(map(len, blocks)), strict=True):
        yield result
        if progress:
            progress(finished, count)


def groups(pieces: Sequence[P], size: int) -> Iterator[tuple[P, ...]]:
    """Yield the pieces in groups of `size`.

    >>> list(groups([1, 2, 3], 2))
    [(1, 2), (3,)]
    """
    iterator = iter(pieces)
    while group := tuple(islice(iterator, size)):
        yield group


def in_window(
    submit: Callable[[P], Callable[[], T]], pieces: Iterator[P], window: int
) -> Iterator[T]:
    """Yield the results of pieces in their order, with few of them under way at a time.

    Args:
        submit: begins the work on a piece; returns a function that waits for its result.
        pieces: the next one is taken when there is room in the window.
        window: how many pieces may be under way, or done and not yet yielded; at least 1.
    """
    waiting: deque[Callable[[], T]] = deque()
    for piece in pieces:
        waiting.append(submit(piece))
        if len(waiting) >= window:
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()
