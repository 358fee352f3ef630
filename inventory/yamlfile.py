"""Read a YAML file as plain data, with the line of every key and item for messages.

The readers of fabric specs, inventories and scenarios call `read`, and validate the `Document`
(`inventory.document_errors`). Values come out as they were written: text, whole numbers, None,
lists and mappings with text keys. YAML's other guesses (`no` a truth value, `52:54:00:12:34:56` a
number in base 60, `1e3`, `007`) are left as text, so that a name or a MAC address is what the
reader sees, and a model that wants a number says that it was given text. Merge keys (`<<`) and
aliases work.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from inventory.problems import Finding, InputError, KeyPath, Problem, few, file_name, shown

STDIN = "-"
"""The name of standard input."""
DEEPEST = 50
"""The most mappings and lists within each other."""
MOST_BY_ALIASES = 1_000_000
"""The most values that aliases repeat."""
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,14}")
"""A whole number that is read as a number; longer ones are left as text."""
NULL_TEXTS = frozenset(("", "~", "null", "Null", "NULL"))
"""The texts that mean no value."""


class Unreadable(InputError):
    """A file that cannot be read: the mistake is in what names it."""


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """The one mapping of a YAML file, or of a program (`from_values`), which has no lines."""

    file: str
    """The file's name in messages."""
    sha256: str
    """The SHA-256 digest of the bytes read, in hex."""
    data: dict[str, Any]
    """The mapping."""
    lines: dict[int, Any] = field(default_factory=dict)
    """The line of each key or item, from 1, by the id of the mapping or list that it is in."""

    def line(self, path: KeyPath) -> int:
        """The line of the value at `path`, or of the last part of the path that exists.

        0 where the document has no lines.
        """
        if not self.lines:
            return 0
        value: Any = self.data
        line: int = next(iter(self.lines[id(value)].values()), 1)
        for part in path:
            try:
                line, value = self.lines[id(value)][part], value[part]
            except (KeyError, IndexError, TypeError):
                break
        return line

    def problem(self, path: KeyPath, required: str, given: str, todo: str = "") -> Problem:
        """A problem with the value at `path`."""
        return self.placed(Finding(path, required, given, todo))

    def placed(self, finding: Finding) -> Problem:
        """A finding with its file and line."""
        return finding.problem(self.file, self.line(finding.path), self.line(finding.also))

    def unreadable(self, path: KeyPath, error: Unreadable) -> InputError:
        """The error at the value at `path`, which names a file that cannot be read."""
        file: Any = self.data
        for part in path:
            file = file[part]
        return InputError(
            self.problem(path, p.required, f"{shown(file, 160)}, {p.given}", p.todo)
            for p in error.problems
        )

    def report(self, findings: Iterable[Finding]) -> list[Problem]:
        """Findings as problems with their lines, sorted by line; of many alike the first few."""
        return sorted(few(map(self.placed, findings)), key=lambda problem: problem.line)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file that was read."""

    name: str
    """The file's name in messages."""
    text: str
    """The text."""
    sha256: str
    """The SHA-256 digest of its bytes, in hex."""


def read_text(path: str | Path) -> TextFile:
    """Read the UTF-8 text file at `path`.

    Raises:
        Unreadable: there is no such file, or none that can be read.
        InputError: it is not UTF-8.
    """
    file = file_name(path)
    content = _content(path, file)
    return TextFile(file, _text(content, file), hashlib.sha256(content).hexdigest())


def read_or_take(source: str | Path | Mapping[str, Any]) -> Document:
    """The YAML file of this name (`read`), or a program's own mapping (`from_values`).

    Raises:
        InputError: as these two, or it is neither.
    """
    if isinstance(source, Mapping):
        return from_values(source)
    if not isinstance(source, str | Path):
        raise InputError.of("a file name, or a mapping", shown(source))
    return read(source)


def read(path: str | Path) -> Document:
    """Read the YAML file at `path`, `-` for standard input.

    Raises:
        Unreadable: there is no such file, or none that can be read.
        InputError: it is not UTF-8 or YAML, or does not hold one mapping.
    """
    file = "<stdin>" if str(path) == STDIN else file_name(path)
    content = _content(path, file)
    builder = _Builder(file)
    data = builder.build(_events(_text(content, file), file))
    return Document(file, hashlib.sha256(content).hexdigest(), data, builder.lines)


def from_values(values: Mapping[str, Any]) -> Document:
    """A program's own mapping as a document, whose problems name keys without file and line.

    Raises:
        InputError: it is nested too deeply.
    """
    data = {str(key): _value(value, 1) for key, value in values.items()}
    return Document("", hashlib.sha256(json.dumps(data).encode()).hexdigest(), data)


def _value(value: Any, depth: int) -> Any:
    """Lists and mappings, text and numbers (NumPy's too) as they are; else the text of it."""
    if depth == DEEPEST:
        required = f"at most {DEEPEST} levels of nesting"
        raise InputError.of(required=required, given="more")
    if isinstance(value, Mapping):
        return {str(key): _value(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_value(inner, depth + 1) for inner in value]
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        value = value.item()
    is_plain = value is None or type(value) in (str, int, float, bool)
    return value if is_plain else str(value)


def _content(path: str | Path, file: str) -> bytes:
    """The bytes of a file, or of standard input; `file` is its name in messages.

    Raises:
        Unreadable: there is no such file, or none that can be read.
    """
    try:
        if str(path) != STDIN:
            return Path(path).read_bytes()
        if sys.stdin is not None:
            return sys.stdin.buffer.read()
        given, todo = "none, standard input is closed", "name a file"
    except FileNotFoundError:
        given, todo = "no such file", "check the name and the folder"
    except IsADirectoryError:
        inside = ", ".join(sorted(str(file) for file in Path(path).glob("*.yaml"))[:4])
        given, todo = "a folder", f"name a file, such as {inside}" if inside else "name a file"
        if Path(path, "manifest.json").is_file():
            given, todo = "a build", f"name its fabric.yaml, or check it: polarfab verify {file}"
    except PermissionError:
        given, todo = "a file without permission to read it", "change its mode or owner"
    except (OSError, ValueError) as error:
        given, todo = str(getattr(error, "strerror", None) or error), "check the name"
    raise Unreadable(Problem(file=file, required="a file to read", given=given, todo=todo))


def _text(content: bytes, file: str) -> str:
    """The bytes of a file as text; `file` is its name in messages.

    Raises:
        InputError: they are not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.of(
            file=file,
            line=content.count(b"\n", 0, error.start) + 1,
            required="UTF-8 text",
            given=f"byte 0x{content[error.start]:02x} at offset {error.start}",
            todo="save the file as UTF-8",
        ) from None


def _events(text: str, file: str) -> Iterator[yaml.Event]:
    """The parser's events; as a tree, a deeply nested document would overflow its stack."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        problem = _unparsed(error, text, file)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problem = Problem(
            file=file,
            line=line,
            required="text without control characters",
            given=f"character {_code(error.character)}",
            todo="delete it",
        )
    else:
        return
    raise InputError(problem)


def _unparsed(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    """The problem of a text that is no YAML.

    Args:
        error: the parser's error.
        text: of the file.
        file: its name.
    """
    mark, start = error.problem_mark or error.context_mark, error.context_mark
    given, todo = f"a mistake ({error.problem or error.context})", "check colons, quotes, brackets"
    if mark is None:
        return Problem(file=file, required="YAML", given=given, todo=todo)
    if start is not None and start.line < mark.line:
        todo += f" and indentation from line {start.line + 1} on"
    lines = text.splitlines()
    if mark.line < len(lines) and "\t" in lines[mark.line][: mark.column + 1]:
        todo = "indent with spaces: YAML allows no tabs there"
    given = f"a mistake in column {mark.column + 1} ({error.problem or error.context})"
    return Problem(file=file, line=mark.line + 1, required="YAML", given=given, todo=todo)


def _code(character: str | int | bytes) -> str:
    """The code point of a character, such as `U+0007`."""
    number = character if isinstance(character, int) else ord(character[:1])
    return f"U+{number:04X}"


@dataclass(slots=True)
class _Frame:
    """A mapping or list that is being read."""

    value: Any
    """The mapping or list."""
    lines: Any
    """The lines of its keys or items."""
    line: int
    """The line at which it begins."""
    anchor: str | None
    """Its anchor; None without one."""
    awaits_value: bool = False
    """Whether the last event was a key of this mapping, so that its value is next."""
    key: str | None = None
    """The key whose value is next."""
    key_line: int = 0
    """The line of that key."""
    size: int = 1
    """The number of values in it, for the limit on aliases."""
    merged: list[Any] = field(default_factory=list)
    """The mappings that `<<` merges into it."""


@dataclass(frozen=True, slots=True)
class _AnchoredValue:
    """The value that an anchor names."""

    value: Any
    """The value."""
    size: int
    """The number of values in it, for the limit on aliases."""


class _Builder:
    """Builds plain data from the parser's events.

    It collects mistakes such as duplicate keys, and stops at one after which it cannot go on.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        """The file's name in messages."""
        self.lines: dict[int, Any] = {}
        """The line of each key or item, as in `Document.lines`."""
        self.problems: list[Problem] = []
        """The mistakes so far."""
        self.stack: list[_Frame] = []
        """The mappings and lists that are being read, the innermost last."""
        self.anchors: dict[str, _AnchoredValue | None] = {}
        """The value of each anchor; None while it is being read."""
        self.repeated_values = 0
        """How many values aliases have repeated."""
        self.root: Any = None
        """The value of the whole document."""
        self.documents = 0
        """How many documents have begun."""

    def build(self, events: Iterable[yaml.Event]) -> dict[str, Any]:
        """The one mapping of a document.

        Raises:
            InputError: every mistake that was found.
        """
        try:
            for event in events:
                self._take(event)
        except InputError as error:
            raise InputError((*self.problems, *error.problems)) from None
        if not isinstance(self.root, dict):
            line, given, todo = 1, shown(self.root), ""
            if self.root is None:
                todo = "polarfab init DIR writes a fabric.yaml and an inventory.yaml to start from"
                line, given = 0, "an empty file"
            self._note(line, "a mapping (key: value)", given, todo)
        if self.problems:
            raise InputError(self.problems)
        data: dict[str, Any] = self.root
        return data

    def _take(self, event: yaml.Event) -> None:
        """Take the next event of the parser."""
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event.anchor, line)
        elif isinstance(event, yaml.MappingStartEvent):
            self._open(event, _Frame({}, {}, line, event.anchor))
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open(event, _Frame([], [], line, event.anchor))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close(self.stack.pop())
        elif isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise self._end(
                    line, "one YAML document", "a second one", "split the file at this ---"
                )

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        """Take a key or a single value."""
        self._tag(event, line)
        frame = self.stack[-1] if self.stack else None
        if frame is not None and isinstance(frame.value, dict) and not frame.awaits_value:
            self._key(frame, event.value, line)
            return
        value = event.value if event.style else _plain(event.value)
        if event.anchor:
            self.anchors[event.anchor] = _AnchoredValue(value, 1)
        self._add(value, line, 1)

    def _open(self, event: yaml.Event, frame: _Frame) -> None:
        """Begin a mapping or list."""
        self._tag(event, frame.line)
        if len(self.stack) == DEEPEST:
            raise self._end(
                frame.line, f"at most {DEEPEST} levels of nesting", "more", "close brackets"
            )
        if frame.anchor:
            self.anchors[frame.anchor] = None
        self.stack.append(frame)

    def _close(self, frame: _Frame) -> None:
        """End a mapping or list, and add it to the one around it."""
        self.lines[id(frame.value)] = frame.lines
        for mapping in frame.merged:
            lines = self.lines[id(mapping)]
            for key, value in mapping.items():
                if key not in frame.value:
                    frame.value[key] = value
                    frame.lines[key] = lines[key]
        if frame.anchor:
            self.anchors[frame.anchor] = _AnchoredValue(frame.value, frame.size)
        self._add(frame.value, frame.line, frame.size)

    def _alias(self, anchor: str | None, line: int) -> None:
        """Add the value of an anchor again."""
        target = self.anchors.get(anchor or "")
        if target is None:
            name = shown(anchor, 32)
            raise self._end(
                line, "an alias of a value above it", f"*{name}", f"define &{name} first"
            )
        self.repeated_values += target.size
        if self.repeated_values > MOST_BY_ALIASES:
            most = f"aliases that repeat at most {MOST_BY_ALIASES:,} values"
            raise self._end(line, most, "more", "write out fewer copies")
        self._add(target.value, line, target.size)

    def _key(self, frame: _Frame, key: str, line: int) -> None:
        """Take a key of a mapping, whose value is next."""
        frame.awaits_value, frame.key, frame.key_line = True, key, line
        if key in frame.value:
            given = f"{shown(key)} again, first in line {frame.lines[key]}"
            self._note(line, "each key once", given, "remove one of them")

    def _add(self, value: Any, line: int, size: int) -> None:
        """Add a value to the innermost mapping or list; `size` is the number of values in it."""
        if not self.stack:
            self.root = value
            return
        frame = self.stack[-1]
        frame.size += size
        if isinstance(frame.value, list):
            frame.value.append(value)
            frame.lines.append(line)
        elif not frame.awaits_value:
            self._note(line, "a word as key", shown(value), "write `key: value`")
            frame.awaits_value, frame.key = True, None
        else:
            frame.awaits_value = False
            if frame.key == "<<":
                self._merge(frame, value, line)
            elif frame.key is not None:
                frame.value[frame.key] = value
                frame.lines[frame.key] = frame.key_line

    def _merge(self, frame: _Frame, value: Any, line: int) -> None:
        """Note what `<<` merges into a mapping when it ends."""
        mappings = value if isinstance(value, list) else [value]
        if all(isinstance(mapping, dict) for mapping in mappings):
            frame.merged.extend(mappings)
        else:
            self._note(line, "an alias of a mapping after <<", shown(value), "write `<<: *name`")

    def _tag(self, event: yaml.Event, line: int) -> None:
        """Note a tag, such as `!!set`: no value may have one."""
        tag = getattr(event, "tag", None)
        if tag not in (None, "!"):
            name = str(tag).replace("tag:yaml.org,2002:", "!!")
            self._note(line, "a value without a tag", shown(name), "remove the tag")

    def _note(self, line: int, required: str, given: str, todo: str = "") -> None:
        """Note a problem after which reading goes on."""
        self.problems.append(
            Problem(file=self.file, line=line, required=required, given=given, todo=todo)
        )

    def _end(self, line: int, required: str, given: str, todo: str) -> InputError:
        """The error to raise where reading on makes no sense."""
        return InputError.of(file=self.file, line=line, required=required, given=given, todo=todo)


def _plain(text: str) -> str | int | None:
    """A value that is written without quotes: a whole number, nothing, or the text."""
    if WHOLE_NUMBER.fullmatch(text):
        return int(text)
    return None if text in NULL_TEXTS else text
