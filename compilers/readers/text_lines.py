"""The lines of a file as positions in its bytes, so that numpy reads millions of routes.

No line becomes a text of Python until it is asked for. Texts are compared eight bytes at once, as
numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
WORD = 8
"""The bytes that are compared at once."""
MASKS = np.array([(1 << 8 * count) - 1 for count in range(WORD + 1)], np.uint64)
"""Masks of the first bytes of a word, by how many bytes."""
FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""An odd number near 2^64 / golden ratio, by which hashes of words are multiplied (Knuth, TAOCP
volume 3, section 6.4)."""
SHIFT = np.uint64(29)
"""By how many bits a product is shifted and added to itself (xor), so that its high bits change its
low ones. The next product would carry them to high bits only. Any number near half of 64 does."""
BLANK, TAB, NEWLINE = ord(" "), ord("\t"), ord("\n")
"""Characters as bytes."""
LAST_PRINTABLE = ord("~")
"""The last printable character of ASCII."""


@dataclass(frozen=True, slots=True, eq=False)
class TextLines:
    """Some lines of a text."""

    data: bytes
    """The text, with zeros behind it."""
    words: NDArray[np.uint64]
    """uint64[bytes]: the eight bytes from each position on, as a number; a view of `data`."""
    number: Integers
    """int64[n]: the numbers of the lines, from 1."""
    start: Integers
    """int64[n]: the position of a line's first byte."""
    end: Integers
    """int64[n]: the position of the byte behind a line's last one."""

    @classmethod
    def of(cls, text: bytes) -> TextLines:
        r"""All lines of a text.

        >>> list(TextLines.of(b"hostname leaf-1\nrouter bgp 65001"))
        [(1, 'hostname leaf-1'), (2, 'router bgp 65001')]
        """
        unfinished = text[-1:] not in (b"", b"\n")
        data = text + (b"\n" if unfinished else b"") + bytes(WORD)
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

    def __getitem__(self, selection: Integers | NDArray[np.bool_]) -> TextLines:
        """The lines at some indices, or those that a mask selects."""
        number, start, end = self.number[selection], self.start[selection], self.end[selection]
        return TextLines(self.data, self.words, number, start, end)

    def numbered(self, number: Integers) -> TextLines:
        """A copy of the lines with new line numbers."""
        return TextLines(self.data, self.words, number, self.start, self.end)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """The number and the text of each line; bytes that are not UTF-8 become U+FFFD."""
        for number, start, end in zip(
            self.number.tolist(), self.start.tolist(), self.end.tolist(), strict=True
        ):
            yield number, self.data[start:end].decode("utf-8", "replace")

    def texts(self) -> list[str]:
        """The text of each line."""
        if not self.data.isascii():
            return [text for _, text in self]
        text = self.data.decode()
        spans = zip(self.start.tolist(), self.end.tolist(), strict=True)
        return [text[start:end] for start, end in spans]

    def strange(self) -> NDArray[np.bool_]:
        """bool[n]: whether a line has characters other than printable ASCII and tabs."""
        data = np.frombuffer(self.data, np.uint8)[:-WORD]
        is_strange = (data < BLANK) & (data != TAB) & (data != NEWLINE) | (data > LAST_PRINTABLE)
        # The positions of strange characters, and one behind the text.
        strange = np.append(np.flatnonzero(is_strange), len(self.data))
        # The first strange character from the start of each line on, in whichever line it is.
        first_from_start = strange[np.searchsorted(strange, self.start)]
        has_strange: NDArray[np.bool_] = first_from_start < self.end
        return has_strange

    def begin_with(self, text: str) -> NDArray[np.bool_]:
        """bool[n]: whether a line begins with a text."""
        prefix = text.encode()
        begins = self.end - self.start >= len(prefix)
        for offset in range(0, len(prefix), WORD):
            part = prefix[offset : offset + WORD]
            words = self._words(self.start + offset, np.int64(len(part)))
            begins &= words == int.from_bytes(part, "little")
        return begins

    def split(self, width: int) -> tuple[TextLines, TextLines]:
        """Cut some first bytes off each line, and the rest at its first blank.

        Args:
            width: how many bytes are cut off.

        Returns:
            The parts of all lines before the blank, and those behind it.

        >>> before, behind = TextLines.of(b"ip route 10.0.0.0/8 eth1").split(len("ip route "))
        >>> before.texts(), behind.texts()
        (['10.0.0.0/8'], ['eth1'])
        """
        data = np.frombuffer(self.data, np.uint8)
        blanks = np.append(np.flatnonzero(data == BLANK), len(self.data))
        start = self.start + width
        cut = np.minimum(blanks[np.searchsorted(blanks, start)], self.end)
        behind = np.minimum(cut + 1, self.end)
        return (
            TextLines(self.data, self.words, self.number, start, cut),
            TextLines(self.data, self.words, self.number, behind, self.end),
        )

    def different_texts(self) -> tuple[list[str], Integers]:
        """The texts of lines, each once.

        Lines are compared by a hash of their words. If two different texts have one hash, all lines
        become texts of Python, and these are compared.

        Returns:
            The texts; int64[n], the index of each line's text among them.
        """
        length = self.end - self.start
        offsets = range(0, int(length.max(initial=0)), WORD)
        words = [self._words(self.start + offset, length - offset) for offset in offsets]
        hashed = length.astype(np.uint64)
        for word in words:
            hashed = (hashed ^ word) * FACTOR
            hashed ^= hashed >> SHIFT
        _, example, index = np.unique(hashed, return_index=True, return_inverse=True)
        if any((word != word[example][index]).any() for word in words):
            _, example, index = np.unique(self.texts(), return_index=True, return_inverse=True)
        return self[example].texts(), index

    def _words(self, start: Integers, length: Integers | np.int64) -> NDArray[np.uint64]:
        """uint64[n]: some bytes from each position on, at most eight, with zeros behind them."""
        words: NDArray[np.uint64] = self.words[np.minimum(start, len(self.words) - 1)]
        return words & MASKS[np.clip(length, 0, WORD)]
