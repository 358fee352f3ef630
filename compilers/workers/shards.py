"""Work cut in pieces: pure functions of what is given and of a piece, wherever they run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import accumulate, islice
from typing import ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

G = TypeVar("G")
P = TypeVar("P")
T = TypeVar("T")


class Workers(Protocol):
    """Processes that work on the pieces of something.

    remote: whether what is given travels to them, so that it has to be pickled.
    """

    remote: ClassVar[bool]

    def over(
        self,
        prepare: Callable[[G], Callable[[P], T]],
        given: G,
        pieces: Sequence[P],
        at_once: int = 1,
        least: int = 2,
    ) -> Iterator[T]:
        """prepare(given)(piece) for all pieces, in their order, as they are done.

        Args:
            prepare: makes, once a process, what is done with a piece; changes in memory are lost.
            given: what the work is about.
            pieces: small values; their results are the same wherever they are computed.
            at_once: pieces that a process takes at a time.
            least: pieces below which processes of this machine cost more than they save.

        Raises:
            Whatever the work raises; what is under way then is given up.
        """


class ThisProcess:
    """Everything is done here, one piece after the other."""

    remote: ClassVar[bool] = False

    def over(
        self,
        prepare: Callable[[G], Callable[[P], T]],
        given: G,
        pieces: Sequence[P],
        at_once: int = 1,  # noqa: ARG002
        least: int = 2,  # noqa: ARG002
    ) -> Iterator[T]:
        """See `Workers.over`."""
        return map(prepare(given), pieces)


THIS_PROCESS = ThisProcess()


Block = NDArray[np.int64]


def in_blocks(numbers: Block, step: int) -> list[Block]:
    """Numbers of nodes in blocks, `step` in each but the last."""
    return [numbers[first : first + step] for first in range(0, len(numbers), step)]


def reported(
    results: Iterable[T], blocks: Sequence[Sized], progress: Callable[[int, int], None] | None
) -> Iterator[T]:
    """The results of blocks; after each, progress(numbers done, all) is called."""
    count = sum(map(len, blocks))
    for result, done in zip(results, accumulate(map(len, blocks)), strict=True):
        yield result
        if progress:
            progress(done, count)


def groups(pieces: Sequence[P], size: int) -> Iterator[tuple[P, ...]]:
    """The pieces, `size` at a time."""
    left = iter(pieces)
    while group := tuple(islice(left, size)):
        yield group


def in_window(
    submit: Callable[[P], Callable[[], T]], pieces: Iterator[P], window: int
) -> Iterator[T]:
    """The results of pieces in their order, of which `window` at most are under way or waiting.

    Args:
        submit: begins the work on a piece; what it returns waits for the result.
        pieces: taken one after the other, as there is room.
        window: at least 1.
    """
    waiting: deque[Callable[[], T]] = deque()
    for piece in pieces:
        waiting.append(submit(piece))
        if len(waiting) >= window:
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()
