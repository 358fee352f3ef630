"""JSON and YAML as indented lines, so that the engine for configurations can read them.

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
import yaml

from compilers.readers.exact_text import exact_lines, indentation, strange, strange_line, visible
from compilers.readers.strict_json import parse
from compilers.readers.text_lines import TextLines

DEEPEST = 64
"""The most levels of YAML; rendered files have fewer than ten."""
NUMBERS = "sequence", "id", "index"
"""Keys that name entries by numbers: there digits in quotes are another value."""
_encoder = json.JSONEncoder(sort_keys=True, ensure_ascii=False)
BLANK = re.compile(r"[^\x21-\x7e]")
DIGITS = re.compile("[0-9]+")
FLOW = re.compile(r' *"([^"]+)": (\{.*\})')
"""A line of YAML that is a key and a whole mapping."""


class LineKey(str):
    """A key of YAML that knows its line."""

    line: int = 0


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
    tree = _yaml(text) if in_yaml else parse(text)
    writer = _TreeWriter(text, frozenset(whole), keys)
    writer.below(tree if isinstance(tree, dict) else {"no mapping": tree}, 0)
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
        self.numbers: list[int] = []
        self._at, self._line = 0, 1
        self._entries: dict[object, str] = {}

    def below(self, tree: dict[str, Any], depth: int, unnamed: str = "", above: str = "") -> None:
        """Write the entries of a mapping.

        Args:
            tree: the mapping.
            depth: its level.
            unnamed: the key that names the mapping, and stands in the line above.
            above: the key that holds the mapping.
        """
        for key, value in tree.items():
            line = self._line_of(key)
            if key == unnamed:
                continue
            name, name_key = _name(key), self.keys.get(f"{above}/{key}", self.keys.get(key))
            whole = key in self.whole or f"{above}/{key}" in self.whole
            of_mappings = isinstance(value, list) and all(isinstance(e, dict) for e in value)
            if whole and (of_mappings if name_key else isinstance(value, dict)):
                self._whole(name, value, depth, name_key or "")
            elif isinstance(value, dict):
                self._put(depth, name, line)
                self.below(value, depth + 1, above=key)
            elif isinstance(value, list) and value:
                self._list(name, value, depth, line, name_key or "name")
            else:
                self._put(depth, f"{name} {_text(value)}", line)

    def _list(self, name: str, entries: list[Any], depth: int, line: int, name_key: str) -> None:
        """Write the entries of a list; one with the name of an earlier one gets `again`."""
        names: set[str] = set()
        for entry in entries:
            if not isinstance(entry, dict):
                self._put(depth, f"{name} - {_text(entry)}", self._line_of(entry))
                continue
            word = _name(entry[name_key]) if name_key in entry else "without a name"
            if name_key in NUMBERS and entry.get(name_key) == word and DIGITS.fullmatch(word):
                word = _text(word)  # in quotes it is no number
            again = " again" if word in names else ""
            names.add(word)
            entry_line = self._line_of(next(iter(entry), "")) or line
            self._put(depth, f"{name} {word}{again}", entry_line)
            self.below(entry, depth + 1, name_key)

    def _whole(
        self, name: str, entries: dict[str, Any] | list[Any], depth: int, name_key: str
    ) -> None:
        """Write each entry in one line, by its key, or in a list by the key that names it."""
        if isinstance(entries, dict):
            for key, entry in entries.items():
                line = self._line_of(key)
                self._put(depth, f"{name} {_name(key)} {self._entry(entry)}", line)
            return
        written: set[str] = set()
        for entry in entries:
            line = self._line_of(word := entry.get(name_key, "without a name"))
            words = f"{name} {_name(word)} {self._entry(entry, name_key)}"
            self._put(depth, f"{words} again" if words in written else words, line)
            written.add(words)

    def _entry(self, entry: Any, name_key: str = "") -> str:
        """The text of an entry without its name. Entries of a file are few, so texts are kept."""
        rest = {k: value for k, value in entry.items() if k != name_key} if name_key else entry
        plain = isinstance(entry, dict) and all(type(value) is str for value in rest.values())
        key = tuple(rest.items()) if plain else id(entry)
        if key not in self._entries:
            self._entries[key] = _text(rest)
        return self._entries[key]

    def _put(self, depth: int, words: str, line: int) -> None:
        self.lines.append(" " * depth + words)
        self.numbers.append(line)

    def _line_of(self, word: object) -> int:
        """The line of a key, or of a text in a list, behind the word that was searched for last."""
        if isinstance(word, LineKey):
            return word.line
        plain = isinstance(word, str) and "\\" not in word and '"' not in word
        at = self.text.find(f'"{word}"' if plain else json.dumps(word), self._at)
        if at >= 0:
            self._line += self.text.count("\n", self._at, at)
            self._at = at
        return self._line


def _name(word: object) -> str:
    """A name as it stands in a line; one with blanks or line ends is written as JSON writes it."""
    return json.dumps(word) if BLANK.search(str(word)) else str(word)


def _text(value: object) -> str:
    return _encoder.encode(value)


def _yaml(text: str) -> Any:
    """The commands of NVUE's startup.yaml, which are below its only key `set`.

    A YAML parser takes half a second for a thousand lines of routes, and routes are the last lines
    of the file, each a key with a mapping (`FLOW`). So equal mappings are parsed once, and the
    parser gets the lines above with one key "" in the place of the routes.
    """
    rows = exact_lines(text)
    matches = [FLOW.fullmatch(line) for line in rows]
    first = next((n for n in range(len(rows), 0, -1) if matches[n - 1] is None), 0)
    try:
        routes: dict[str, Any] = {}
        parsed: dict[str, Any] = {}
        for number, match in enumerate(filter(None, matches[first:]), first + 1):
            if match[2] not in parsed:
                parsed[match[2]] = _value(yaml_node(match[2]))
            _enter(routes, match[1], number, parsed[match[2]])
        depths = {indentation(line) for line in rows[first:]}
        if not routes or len(depths) != 1 or not rows[first - 1].endswith(":"):
            return _commands(_value(yaml_node(text)))
        head = "\n".join([*rows[:first], " " * depths.pop() + '"": {}'])
        return _commands(_value(yaml_node(head), routes))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark.line + 1 if error.problem_mark else 0
        raise ValueError(mark, f"{error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(0, f"no YAML: {error}") from error


def yaml_node(text: str) -> yaml.Node | None:
    """The node of a text of YAML.

    libyaml composes nodes by recursion in C, which crashes on a deep text. So depth is counted by
    its events before, which need no recursion.

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


def _commands(tree: Any) -> Any:
    """The mapping below `set`, the only key that the file may have."""
    match tree:
        case [{"set": dict(commands), **more}] if not more:
            return commands
    return {"no set": tree}


def _value(node: yaml.Node | None, tail: dict[str, Any] | None = None) -> Any:
    """The mappings, lists and texts of a node; all plain values are texts.

    Args:
        node: of YAML.
        tail: entries to put in the place of the key "".

    Raises:
        ValueError: (line, text) a key is twice in a mapping.
    """
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for word, inner in node.value:
            if tail is not None and word.value == "":
                mapping |= tail
            else:
                _enter(mapping, word.value, word.start_mark.line + 1, _value(inner, tail))
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_value(inner, tail) for inner in node.value]
    return node.value if node else {}


def _enter(tree: dict[str, Any], word: object, line: int, value: Any) -> None:
    """Put a key with its line into a mapping, which may not have it yet."""
    key = LineKey(word)
    key.line = line
    if key in tree:
        raise ValueError(line, f"the key {key} twice in a mapping")
    tree[key] = value
