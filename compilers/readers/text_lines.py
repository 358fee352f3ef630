"""The lines of a file as places in its bytes, so that millions of routes are read by numpy.

Texts are compared as numbers of eight bytes each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
WORD = 8
MASKS = np.array([(1 << 8 * count) - 1 for count in range(WORD + 1)], np.uint64)
"""The first bytes of a word, by their count."""
FACTOR = np.uint64(0x9E3779B97F4A7C15)
BLANK, TAB, NEWLINE, LAST = ord(" "), ord("\t"), ord("\n"), ord("~")


@dataclass(frozen=True, slots=True, eq=False)
class TextLines:
    """Some lines of a text: their numbers in it from 1, where each starts and ends.

    data: the text, zeros behind it. words: uint64, the eight bytes from each place on.
    """

    data: bytes
    words: NDArray[np.uint64]
    number: Integers
    start: Integers
    end: Integers

    @classmethod
    def of(cls, text: bytes) -> TextLines:
        """All lines of a text."""
        data = text + b"\n" * (text[-1:] not in (b"", b"\n")) + bytes(WORD)
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == NEWLINE)
        starts = np.concatenate((np.zeros(1, np.int64), ends[:-1] + 1))[: len(ends)]
        words = np.ndarray((len(data) - WORD + 1,), "<u8", data, strides=(1,))
        return cls(data, words, np.arange(1, len(ends) + 1), starts, ends)

    @classmethod
    def read(cls, file: Path) -> TextLines:
        """All lines of a file.

        Raises:
            OSError: it cannot be read.
        """
        return cls.of(file.read_bytes())

    def __getitem__(self, some: Integers | NDArray[np.bool_]) -> TextLines:
        """Some of the lines."""
        columns = self.number[some], self.start[some], self.end[some]
        return TextLines(self.data, self.words, *columns)

    def numbered(self, number: Integers) -> TextLines:
        """The same lines with other numbers."""
        return TextLines(self.data, self.words, number, self.start, self.end)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """The number and the text of each line; bytes that are no UTF-8 are U+FFFD."""
        for number, start, end in zip(
            self.number.tolist(), self.start.tolist(), self.end.tolist(), strict=True
        ):
            yield number, self.data[start:end].decode("utf-8", "replace")

    def texts(self) -> list[str]:
        """The text of each line."""
        if not self.data.isascii():
            return [text for _, text in self]
        text = self.data.decode()
        places = zip(self.start.tolist(), self.end.tolist(), strict=True)
        return [text[start:end] for start, end in places]

    def strange(self) -> NDArray[np.bool_]:
        """bool[n]: the lines with other characters than printable ones of ASCII and tabs."""
        data = np.frombuffer(self.data, np.uint8)[:-WORD]
        odd = (data < BLANK) & (data != TAB) & (data != NEWLINE) | (data > LAST)
        places = np.flatnonzero(odd)
        first = np.append(places, len(self.data))[np.searchsorted(places, self.start)]
        inside: NDArray[np.bool_] = first < self.end
        return inside

    def beginning(self, head: str) -> NDArray[np.bool_]:
        """bool[n]: which lines begin with a text."""
        wanted = head.encode()
        fits = self.end - self.start >= len(wanted)
        for step in range(0, len(wanted), WORD):
            part = wanted[step : step + WORD]
            found = self._words(self.start + step, np.int64(len(part)))
            fits &= found == int.from_bytes(part, "little")
        return fits

    def split(self, head: int) -> tuple[TextLines, TextLines]:
        """What is between the first `head` bytes and the next blank, and behind that."""
        data = np.frombuffer(self.data, np.uint8)
        blanks = np.append(np.flatnonzero(data == BLANK), len(self.data))
        start = self.start + head
        cut = np.minimum(blanks[np.searchsorted(blanks, start)], self.end)
        behind = np.minimum(cut + 1, self.end)
        return (
            TextLines(self.data, self.words, self.number, start, cut),
            TextLines(self.data, self.words, self.number, behind, self.end),
        )

    def alike(self) -> tuple[list[str], Integers]:
        """The different texts, and int64[n], which of them each line is."""
        length = self.end - self.start
        steps = range(0, int(length.max(initial=0)), WORD)
        words = [self._words(self.start + step, length - step) for step in steps]
        mixed = length.astype(np.uint64)
        for word in words:
            mixed = (mixed ^ word) * FACTOR
            mixed ^= mixed >> np.uint64(29)
        _, example, which = np.unique(mixed, return_index=True, return_inverse=True)
        if any((word != word[example][which]).any() for word in words):
            _, example, which = np.unique(self.texts(), return_index=True, return_inverse=True)
        return self[example].texts(), which

    def _words(self, start: Integers, length: Integers | np.int64) -> NDArray[np.uint64]:
        """uint64[n]: the first bytes from each place on, at most eight, zeros behind them."""
        found: NDArray[np.uint64] = self.words[np.minimum(start, len(self.words) - 1)]
        return found & MASKS[np.clip(length, 0, WORD)]
