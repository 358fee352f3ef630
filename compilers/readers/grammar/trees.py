"""Trees of JSON and YAML as lines for the engine: a key a line, what it holds below, more right.

An entry of a list of mappings is `KEY NAME`, its name what it has at the key of the list, `name`
unless a grammar has another; one that is no mapping is `KEY - VALUE`; other values follow
their key as JSON writes them. Below a key that a grammar takes whole each entry is one line,
`KEY NAME {…}`, whose mapping has its keys in order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import yaml

from compilers.readers.exact_text import exact_lines, indentation, strange, strange_line, visible
from compilers.readers.strict_json import parse
from compilers.readers.text_lines import TextLines

DEEPEST = 64
"""Levels of YAML: files here have fewer than ten."""
NUMBERS = "sequence", "id", "index"
"""Keys of lists that are numbers, where all of their text is digits."""
_encoder = json.JSONEncoder(sort_keys=True, ensure_ascii=False)
BLANK = re.compile(r"[^\x21-\x7e]")
DIGITS = re.compile("[0-9]+")
FLOW = re.compile(r' *"([^"]+)": (\{.*\})')
"""A line of YAML that is a key and a whole mapping."""


class LineKey(str):
    """A key, and the line where it is."""

    line: int = 0


def tree_lines(
    text: str,
    whole: Collection[str],
    keys: Mapping[str, str] = MappingProxyType({}),
    *,
    in_yaml: bool = False,
) -> TextLines:
    """The lines of a tree, each with the number that its key has in the text.

    Args:
        text: JSON, or YAML.
        whole: keys whose entries are one line each, or `ABOVE/KEY` where it is below another.
        keys: by list, likewise, what names its entries.
        in_yaml: which of the two.

    Raises:
        ValueError: (line, text) it is neither, has a strange character, or a key twice.
    """
    if found := strange(text):  # of YAML some end lines, even those of comments
        raise ValueError(strange_line(text), f"the character {visible(found[0])}")
    tree = _yaml(text) if in_yaml else parse(text)
    writer = _TreeWriter(text, frozenset(whole), keys)
    writer.below(tree if isinstance(tree, dict) else {"no mapping": tree}, 0)
    lines = TextLines.of("".join(f"{line}\n" for line in writer.lines).encode("utf-8", "replace"))
    return lines.numbered(np.array(writer.numbers, np.int64))


class _TreeWriter:
    """Writes lines in the order of the text, so that one pass over it finds where keys are."""

    def __init__(self, text: str, whole: frozenset[str], keys: Mapping[str, str]) -> None:
        self.text, self.whole, self.keys = text, whole, keys
        self.lines: list[str] = []
        self.numbers: list[int] = []
        self._at, self._line = 0, 1
        self._entries: dict[object, str] = {}

    def below(self, tree: dict[str, Any], depth: int, unnamed: str = "", above: str = "") -> None:
        """What a mapping holds, below a key, but for the key that names it."""
        for key, value in tree.items():
            line = self._found(key)
            if key == unnamed:
                continue
            name, known = _name(key), self.keys.get(f"{above}/{key}", self.keys.get(key))
            whole = key in self.whole or f"{above}/{key}" in self.whole
            listed = isinstance(value, list) and all(isinstance(each, dict) for each in value)
            if whole and (listed if known else isinstance(value, dict)):
                self._whole(name, value, depth, known or "")
            elif isinstance(value, dict):
                self._put(depth, name, line)
                self.below(value, depth + 1, above=key)
            elif isinstance(value, list) and value:
                self._entries_of(name, value, depth, line, known or "name")
            else:
                self._put(depth, f"{name} {_text(value)}", line)

    def _entries_of(self, name: str, entries: list[Any], depth: int, line: int, known: str) -> None:
        seen: set[str] = set()
        for entry in entries:
            if not isinstance(entry, dict):
                self._put(depth, f"{name} - {_text(entry)}", self._found(entry))
                continue
            word = _name(entry[known]) if known in entry else "without a name"
            if known in NUMBERS and entry.get(known) == word and DIGITS.fullmatch(word):
                word = _text(word)  # in quotes it is no number
            again = " again" * (word in seen)
            seen.add(word)
            self._put(depth, f"{name} {word}{again}", self._found(next(iter(entry), "")) or line)
            self.below(entry, depth + 1, known)

    def _whole(
        self, name: str, entries: dict[str, Any] | list[Any], depth: int, known: str
    ) -> None:
        if isinstance(entries, dict):
            for key, entry in entries.items():
                line = self._found(key)
                self._put(depth, f"{name} {_name(key)} {self._entry(entry)}", line)
            return
        seen: set[str] = set()
        for entry in entries:
            line = self._found(word := entry.get(known, "without a name"))
            words = f"{name} {_name(word)} {self._entry(entry, known)}"
            self._put(depth, words + " again" * (words in seen), line)
            seen.add(words)

    def _entry(self, entry: Any, known: str = "") -> str:
        """The text of an entry without a key; those of a file are few."""
        rest = {k: value for k, value in entry.items() if k != known} if known else entry
        plain = isinstance(entry, dict) and all(type(value) is str for value in rest.values())
        key = tuple(rest.items()) if plain else id(entry)
        if key not in self._entries:
            self._entries[key] = _text(rest)
        return self._entries[key]

    def _put(self, depth: int, words: str, line: int) -> None:
        self.lines.append(" " * depth + words)
        self.numbers.append(line)

    def _found(self, word: object) -> int:
        """The line of a key, or of a text in a list, behind what was found before."""
        if isinstance(word, LineKey):
            return word.line
        plain = isinstance(word, str) and "\\" not in word and '"' not in word
        at = self.text.find(f'"{word}"' if plain else json.dumps(word), self._at)
        if at >= 0:
            self._line += self.text.count("\n", self._at, at)
            self._at = at
        return self._line


def _name(word: object) -> str:
    """A word on its line; with blanks or line ends in it, as JSON writes it."""
    return json.dumps(word) if BLANK.search(str(word)) else str(word)


def _text(value: object) -> str:
    return _encoder.encode(value)


def _yaml(text: str) -> Any:
    """The commands of NVUE's file: what is below the one `set`.

    A YAML parser takes half a second for a thousand lines of routes, so the mappings of lines such
    as `FLOW` are parsed once each, where the last lines of the file are all such.
    """
    rows = exact_lines(text)
    matches = [FLOW.fullmatch(line) for line in rows]
    first = next((n for n in range(len(rows), 0, -1) if matches[n - 1] is None), 0)
    try:
        tail: dict[str, Any] = {}
        known: dict[str, Any] = {}
        for number, match in enumerate(filter(None, matches[first:]), first + 1):
            if match[2] not in known:
                known[match[2]] = _value(yaml_node(match[2]))
            _enter(tail, match[1], number, known[match[2]])
        depths = {indentation(line) for line in rows[first:]}
        if not tail or len(depths) != 1 or not rows[first - 1].endswith(":"):
            return _set(_value(yaml_node(text)))
        head = "\n".join([*rows[:first], " " * depths.pop() + '"": {}'])
        return _set(_value(yaml_node(head), tail))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark.line + 1 if error.problem_mark else 0
        raise ValueError(mark, f"{error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(0, f"no YAML: {error}") from error


def yaml_node(text: str) -> yaml.Node | None:
    """The node of a text.

    libyaml composes by recursion in C, which a deep text ends with a signal; its events have none.

    Raises:
        ValueError: (line, text) it is too deep.
        YAMLError: it is no YAML.
    """
    depth = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            line = event.start_mark.line + 1 if event.start_mark else 0
            raise ValueError(line, "no YAML that anything reads: too deep")
    return yaml.compose(text, yaml.CSafeLoader)


def _set(tree: Any) -> Any:
    """The mapping below `set`, the only command."""
    match tree:
        case [{"set": dict(commands), **more}] if not more:
            return commands
    return {"no set": tree}


def _value(node: yaml.Node | None, tail: dict[str, Any] | None = None) -> Any:
    """Mappings, lists and texts of YAML; `tail` is in the place of the key "".

    Raises:
        ValueError: (line, text) a key is twice in a mapping.
    """
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for word, inner in node.value:
            if tail is not None and word.value == "":
                found |= tail
            else:
                _enter(found, word.value, word.start_mark.line + 1, _value(inner, tail))
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_value(inner, tail) for inner in node.value]
    return node.value if node else {}


def _enter(tree: dict[str, Any], word: object, line: int, value: Any) -> None:
    key = LineKey(word)
    key.line = line
    if key in tree:
        raise ValueError(line, f"the key {key} twice in a mapping")
    tree[key] = value
