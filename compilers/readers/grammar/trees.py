"""JSON and YAML as indented lines, so that the engine for configurations can read them.

`Grammar.lines` calls `tree_lines` for files of data, and so does the check of AVD's files.

Each key has a line, and what it holds is below it, indented by one blank:

- a plain value: `KEY VALUE`, the value as JSON writes it
- an entry of a list of mappings: `KEY NAME`, by the value that the entry has at `name` or at
  another key that the grammar states
- another entry of a list: `KEY - VALUE`
- an entry below a key that the grammar takes whole: `KEY NAME {…}`, all of it, with sorted keys
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from compilers.readers.exact_text import strange, strange_line, visible
from compilers.readers.grammar.yaml_tree import LineKey, read_yaml
from compilers.readers.strict_json import parse
from compilers.readers.text_lines import TextLines

NUMBER_KEYS = "sequence", "id", "index"
"""Keys that name entries by numbers. Digits in quotes are another value there than a number."""
NOT_A_WORD = re.compile(r"[^\x21-\x7e]")
"""A character with which a name is not one word of a line."""
DIGITS = re.compile("[0-9]+")
"""A number, such as `10`."""
_encoder = json.JSONEncoder(sort_keys=True, ensure_ascii=False)
"""Writes values as JSON, made once for all of them."""


def tree_lines(
    text: str,
    whole: Collection[str],
    keys: Mapping[str, str] = MappingProxyType({}),
    *,
    in_yaml: bool = False,
) -> TextLines:
    r"""The lines of a tree, each with the number of the line in which the text has its key.

    Args:
        text: JSON, or YAML.
        whole: keys whose entries are one line each, as KEY or ABOVE/KEY.
        keys: the key that names the entries of a list, by the key of the list, as KEY or ABOVE/KEY.
        in_yaml: whether the text is YAML.

    Raises:
        ValueError: (line, text) it cannot be parsed, has a strange character, or a key twice.

    >>> list(tree_lines('{"interfaces": [\n {"name": "eth1", "mtu": 9000}]}', ()))
    [(2, 'interfaces eth1'), (2, ' mtu 9000')]
    """
    if character := strange(text):  # some end a line of YAML, and with it a comment
        raise ValueError(strange_line(text), f"the character {visible(character[0])}")
    tree = read_yaml(text) if in_yaml else parse(text)
    writer = _TreeWriter(text, frozenset(whole), keys)
    writer.write_mapping(tree if isinstance(tree, dict) else {"no mapping": tree}, 0)
    lines = TextLines.of("".join(f"{line}\n" for line in writer.lines).encode("utf-8", "replace"))
    return lines.numbered(np.array(writer.numbers, np.int64))


class _TreeWriter:
    """Writes the lines of a tree, with their numbers in the text.

    JSON's parser does not tell lines. So keys are searched for in the order of the text, in one
    pass over it.
    """

    def __init__(self, text: str, whole: frozenset[str], keys: Mapping[str, str]) -> None:
        self.text, self.whole, self.keys = text, whole, keys
        self.lines: list[str] = []
        """The lines that were written."""
        self.numbers: list[int] = []
        """The number of each line in the text."""
        self._position, self._line = 0, 1
        """The position in the text where the last key was found, and its line."""
        self._texts_of_entries: dict[object, str] = {}
        """The texts of entries that were written whole, by their contents or by their `id`."""

    def write_mapping(
        self, tree: dict[str, Any], depth: int, name_key: str = "", parent_key: str = ""
    ) -> None:
        """Write the entries of a mapping.

        Args:
            tree: the mapping.
            depth: its level.
            name_key: the key that names the mapping. It is not written, as the line above has it.
            parent_key: the key that holds the mapping.
        """
        for key, value in tree.items():
            line = self._line_of(key)
            if key == name_key:
                continue
            name = _name(key)
            entry_name_key = self.keys.get(f"{parent_key}/{key}", self.keys.get(key))
            if self._is_one_line_each(key, parent_key, value, entry_name_key):
                self._write_one_line_each(name, value, depth, entry_name_key or "")
            elif isinstance(value, dict):
                self._write_line(depth, name, line)
                self.write_mapping(value, depth + 1, parent_key=key)
            elif isinstance(value, list) and value:
                self._write_list(name, value, depth, line, entry_name_key or "name")
            else:
                self._write_line(depth, f"{name} {_text(value)}", line)

    def _is_one_line_each(
        self, key: str, parent_key: str, value: Any, name_key: str | None
    ) -> bool:
        """Whether the entries below a key are written in one line each.

        The grammar names such keys in `whole`. Below them is a list of mappings if the grammar also
        states which key names its entries, and else a mapping.

        Args:
            key: the key.
            parent_key: the key that holds its mapping.
            value: what is below it.
            name_key: the key that names the entries of a list; None: the entries are in a mapping.
        """
        if key not in self.whole and f"{parent_key}/{key}" not in self.whole:
            return False
        if name_key is None:
            return isinstance(value, dict)
        return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)

    def _write_list(
        self, name: str, entries: list[Any], depth: int, line: int, name_key: str
    ) -> None:
        """Write the entries of a list.

        An entry with the name of an earlier one gets `again`, so that its line is another.
        """
        names: set[str] = set()
        for entry in entries:
            if not isinstance(entry, dict):
                self._write_line(depth, f"{name} - {_text(entry)}", self._line_of(entry))
                continue
            entry_name = _name(entry[name_key]) if name_key in entry else "without a name"
            is_text = entry.get(name_key) == entry_name
            if name_key in NUMBER_KEYS and is_text and DIGITS.fullmatch(entry_name):
                entry_name = _text(entry_name)  # in quotes, as it is no number
            again = " again" if entry_name in names else ""
            names.add(entry_name)
            # The line of its first key; that of the list's key where a `LineKey` has no line (0).
            entry_line = self._line_of(next(iter(entry), "")) or line
            self._write_line(depth, f"{name} {entry_name}{again}", entry_line)
            self.write_mapping(entry, depth + 1, name_key)

    def _write_one_line_each(
        self, name: str, entries: dict[str, Any] | list[Any], depth: int, name_key: str
    ) -> None:
        """Write each entry in one line, by its key, or in a list by the key that names it."""
        if isinstance(entries, dict):
            for key, entry in entries.items():
                line = self._line_of(key)
                self._write_line(depth, f"{name} {_name(key)} {self._text_of_entry(entry)}", line)
            return
        written: set[str] = set()
        for entry in entries:
            entry_name = entry.get(name_key, "without a name")
            line = self._line_of(entry_name)
            text = f"{name} {_name(entry_name)} {self._text_of_entry(entry, name_key)}"
            self._write_line(depth, f"{text} again" if text in written else text, line)
            written.add(text)

    def _text_of_entry(self, entry: Any, name_key: str = "") -> str:
        """The text of an entry without its name.

        Texts are remembered, as a file has few different ones.
        """
        without_name = entry
        if name_key:
            without_name = {key: value for key, value in entry.items() if key != name_key}
        has_texts_only = isinstance(entry, dict) and all(
            type(value) is str for value in without_name.values()
        )
        # Equal mappings of texts share one text. Other values may not be hashable, so an entry with
        # such values has a text of its own.
        key = tuple(without_name.items()) if has_texts_only else id(entry)
        if key not in self._texts_of_entries:
            self._texts_of_entries[key] = _text(without_name)
        return self._texts_of_entries[key]

    def _write_line(self, depth: int, text: str, number: int) -> None:
        """Write a line, with its number in the text that is read."""
        self.lines.append(" " * depth + text)
        self.numbers.append(number)

    def _line_of(self, word: object) -> int:
        """The line of a key, or of a text in a list, behind the word that was searched for last."""
        if isinstance(word, LineKey):
            return word.line
        is_plain = isinstance(word, str) and "\\" not in word and '"' not in word
        in_quotes = f'"{word}"' if is_plain else json.dumps(word)
        position = self.text.find(in_quotes, self._position)
        if position >= 0:
            self._line += self.text.count("\n", self._position, position)
            self._position = position
        return self._line


def _name(word: object) -> str:
    """A name as it stands in a line; one with blanks or line ends is written as JSON writes it."""
    return json.dumps(word) if NOT_A_WORD.search(str(word)) else str(word)


def _text(value: object) -> str:
    """A value as JSON writes it, with sorted keys."""
    return _encoder.encode(value)
