"""The engine: reads a text from its first line to its last, as the device does.

What is above decides what a line means: the section that is open, and what was defined. Every
statement that no rule of that place reads is unknown. Routes, of which a file may have tens of
thousands, are taken in runs: a run has a place as a line has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from compilers.readers.emitted_forwarding import Interface
from compilers.readers.exact_text import bare, exact_number, indentation, strange
from compilers.readers.grammar.rules import (
    PREFIX,
    Fields,
    Grammar,
    GrammarRule,
    RouteHead,
    Verb,
)
from compilers.readers.route_tables import RouteLines
from compilers.readers.statements import BETWEEN
from compilers.readers.text_lines import TextLines

ARGUMENT = re.compile(r"<([a-z]+\d?)>")
NEVER = 1 << 60


class Place(NamedTuple):
    """A statement: its line, its text, and the texts of its fields and of its sections'."""

    line: int
    text: str
    fields: Fields


class GrammarActor(Protocol):
    """What the verbs of a grammar do: methods by their names, with a place and arguments."""

    def wrong(self, line: int, text: str) -> None:
        """Note what is missing, or understood and wrong."""

    def unknown(self, line: int, text: str) -> None:
        """Note a statement that no rule reads."""

    def next_hop(self, place: Place, kind: str, *words: str) -> tuple[str, str] | None:
        """The table of a route and its one text; None where it makes no sense.

        Args:
            place: where such a route occurs first; the text is that behind its prefix.
            kind: of the route.
            words: the other arguments of its rule.
        """


@dataclass(slots=True)
class _Open:
    """A line below which others may follow; rule is None where none fits.

    path: of a statement, behind those of the sections that it is in. used: whether any do.
    ends: whether a word is there that ends it and no other. key: what tells it from others: its
    text, its line if there are several of one text, behind those of its sections.
    """

    indent: int
    line: int
    text: str
    rule: GrammarRule | None
    fields: Fields
    path: str = ""
    used: bool = False
    ends: bool = False
    key: str = ""

    @property
    def section(self) -> bool:
        """Whether it has an end of its own, where sections are ended by a word."""
        return self.rule is not None and (self.used or self.ends or self.path == self.text)


_Section: TypeAlias = tuple[tuple[str, str], ...]
"""The fields of a section, and their texts."""


class _Run(NamedTuple):
    """Lines of routes that follow each other: of a head, the first and the last of the text."""

    head: int
    first: int
    last: int


@dataclass(slots=True)
class TextEngine:
    """The reading of one text.

    defined: the line of each definition. said: the statements of sections that are taken whole,
    with their lines. routes: by table.
    """

    grammar: Grammar
    actor: GrammarActor
    defined: dict[str, int] = field(default_factory=dict)
    said: dict[str, int] = field(default_factory=dict)
    routes: dict[str, RouteLines] = field(default_factory=dict)
    _open: list[_Open] = field(default_factory=list)
    _sections: dict[tuple[GrammarRule, str], _Open] = field(default_factory=dict)
    _seen: set[tuple[GrammarRule, str]] = field(default_factory=set)
    _only: list[tuple[Verb, Place]] = field(default_factory=list)
    _wanted: list[tuple[str, Place]] = field(default_factory=list)
    _last: str = ""
    _single: dict[tuple[RouteHead, _Section], list[tuple[int, str]]] = field(default_factory=dict)

    def read(self, lines: TextLines, *, whole: bool = True) -> None:
        """Read all lines, and tell the actor what they say.

        Args:
            lines: of a file.
            whole: whether they are all of it, so that what it has to say can be missing.
        """
        taken: dict[tuple[RouteHead, _Section], list[np.ndarray[Any, Any]]] = {}
        for run in _runs(self._labels(lines)):
            at = np.arange(run.first, run.last)
            part = lines[at]
            if run.head < 0 or not (head := self._head(self.grammar.heads[run.head], part)):
                for number, text in part:
                    self._line(number, text)
            else:
                taken.setdefault((head, self._section()), []).append(at)
        for head, section in dict.fromkeys((*taken, *self._single)):
            none = np.zeros(0, np.int64)
            of_head = lines[np.concatenate((none, *taken.get((head, section), ())))]
            self._routes(head, of_head, section)
        if whole:
            self._end()

    def _labels(self, lines: TextLines) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """int64[n]: the head of routes that each line begins with, -1: it is another one."""
        label = np.full(len(lines.number), -1, np.int64)
        for number, head in reversed(list(enumerate(self.grammar.heads))):
            label[lines.beginning(head.text)] = number
            for plain in self.grammar.plain:
                if plain.startswith(head.text):
                    label[lines.beginning(plain)] = -1
        label[lines.strange()] = -1
        return label

    def _head(self, head: RouteHead, part: TextLines) -> RouteHead | None:
        """The head of this text in the section that a run of routes is in, None: there is none."""
        number, text = next(iter(part))
        self._leave(number, text)
        if head.section is None and self._last:
            self.actor.wrong(number, f"{text}, behind {self._last}")
        if self._open and self._open[-1].rule is None:
            return None
        section = self._open[-1].rule if self._open else None
        alike = (h for h in self.grammar.heads if h.text == head.text and h.section is section)
        return next(alike, None)

    def _section(self) -> _Section:
        """The fields of the section that is open."""
        return tuple(self._open[-1].fields.items()) if self._open else ()

    def _line(self, number: int, line: str) -> None:
        text = bare(line)
        if not text or text[0] in self.grammar.comment:
            return
        if strange(text):
            self.actor.unknown(number, text)
            return
        depth = indentation(line)
        if text in self.grammar.closes:
            self._close(number, text, depth)
            return
        if self._last:
            self.actor.wrong(number, f"{text}, behind {self._last}")
        self._leave(number, line)
        above = self._open[-1] if self._open else None
        if above and above.rule and above.rule.deep:
            path = f"{above.path}{BETWEEN}{text}"
            above.used = True
            self.said.setdefault(path, number)
            own = any(text.startswith(f"{kind} ") for kind in self.grammar.closes.values() if kind)
            opened = _Open(depth, number, text, above.rule, above.fields, path, ends=own)
            self._open.append(opened)
            return
        rule, fields = None, dict[str, str]()
        if above is None and not depth:
            rule, fields = _read(self.grammar.rules, text)
        elif above and above.rule:
            rule, fields = _read(above.rule.inside, text)
        if rule is None:
            self._unread(number, text, above)
            self._open.append(_Open(depth, number, text, None, {}))
            return
        fields = (above.fields if above else {}) | fields
        place = Place(number, text, fields)
        self._seen.add((rule, above.key if above else ""))
        if rule.routes:
            head = next(head for head in self.grammar.heads if rule in head.rules)
            single = self._single.setdefault((head, self._section()), [])
            single.append((number, text))  # with other blanks before it than a run has
            return
        try:
            self._check(rule.checks, place)
            for verb, *words in rule.verbs:
                getattr(self.actor, verb)(place, *(_argument(word, fields) for word in words))
        except ValueError as error:
            self.actor.wrong(number, f"{text}: {error}")
        if rule.section:
            name = text if rule.pattern.groupindex else f"{number}"
            key = f"{above.key}{BETWEEN}{name}" if above else name
            opened = _Open(depth, number, text, rule, fields, text, key=key)
            self._open.append(opened)
            self._sections.setdefault((rule, opened.key), opened)
            if rule.deep:
                self.said.setdefault(text, number)

    def _leave(self, number: int, line: str) -> None:
        """End the sections that a line is no longer in."""
        depth, text = indentation(line), bare(line)
        while self._open and self._open[-1].indent >= depth:
            left = self._open.pop()
            if self.grammar.closes and left.section:
                self.actor.wrong(number, f"{text}, before {left.text} is ended")
            elif self.grammar.tree:
                continue
            elif left.rule and left.indent == depth and _read(left.rule.inside, text)[0]:
                # The device tries the section that is open first, whatever a line's indentation.
                self.actor.wrong(number, f"{text}, which is read as part of {left.text}")

    def _close(self, number: int, text: str, indent: int) -> None:
        """A word that ends a section."""
        while self._open and self._open[-1].indent > indent:
            left = self._open.pop()
            if left.section:
                self.actor.wrong(number, f"{text}, before {left.text} is ended")
        kind = self.grammar.closes[text]
        if self._open and self._open[-1].indent == indent:
            left = self._open.pop()
            if f"{left.text} ".startswith(f"{kind} "[not kind :]):
                return
        self.actor.wrong(number, f"{text}, where no section {kind} is open".replace("  ", " "))

    def _unread(self, number: int, text: str, above: _Open | None) -> None:
        rules = above.rule.inside if above and above.rule else self.grammar.rules
        without = text.removeprefix("no ")
        if without != text and _read(rules, without)[0]:
            self.actor.wrong(number, text)  # it takes away what is needed
        else:
            self.actor.unknown(number, text)

    def _check(self, checks: Sequence[Verb], place: Place) -> None:
        for verb, *words in checks:
            name = _filled(words, place.fields)
            if verb == "define":
                self.defined.setdefault(name, place.line)
            elif verb == "say":
                self.said.setdefault(place.text, place.line)
            elif verb == "last":
                self._last = place.text
            elif verb == "wants":
                self._wanted.append((name, place))
            elif verb == "needs" and self.defined.get(name, NEVER) > place.line:
                self.actor.wrong(place.line, f"{place.text}, before {name}")
            elif verb == "absent" and name in self.defined:
                self.actor.wrong(place.line, f"{place.text}, behind {name}")
            elif verb == "range":
                low, high, *value = name.split(" ")
                if any(value) and not int(low) <= exact_number(value[0]) <= int(high):
                    self.actor.wrong(place.line, f"{place.text}, not from {low} to {high}")
            elif verb in ("only", "iff"):
                self._only.append(((verb, *["if"] * (verb == "iff"), *words), place))

    def _routes(self, head: RouteHead, lines: TextLines, section: _Section) -> None:
        """The routes of a head in a section, each next hop understood once."""
        parts = [(lines, len(head.text))] if len(lines.number) else []
        if single := self._single.get((head, section)):
            alone = TextLines.of("".join(f"{line}\n" for _, line in single).encode())
            numbers = np.array([number for number, _ in single], np.int64)
            parts.append((alone.numbered(numbers), len(head.text) - head.rules[0].indent))
        for part, width in parts:
            found = RouteLines()
            families = {rule.six for rule in head.rules}
            found.add(part, width, None if families - {head.rules[0].six} else head.rules[0].six)
            keys: dict[str, dict[str, str]] = {}
            six: dict[str, bool | None] = {}
            for text, line in found.first_lines().items():
                for rule in head.rules if text else ():
                    if match := _behind_prefix(rule)[0].fullmatch(text):
                        if key := self._next_hop(rule, match, line, section):
                            keys.setdefault(key[0], {})[text], six[text] = key[1], rule.six
                        break
            odd = found.next_hops if len(families) > 1 else found.next_hops.keys() - six.keys()
            for prefix, text, line in found.rows(*odd):
                if six.get(text, ":" not in prefix) not in (None, ":" in prefix):
                    self.actor.wrong(line, f"{bare(head.text)} {prefix} {text}")
            for table, texts in keys.items():
                self.routes.setdefault(table, RouteLines()).absorb(found.reworded(texts))

    def _next_hop(
        self, rule: GrammarRule, match: re.Match[str], line: int, section: _Section
    ) -> tuple[str, str] | None:
        """The table and the one text of a next hop."""
        own = {k: v for k, v in match.groupdict().items() if v is not None}
        fields = dict(section) | own
        place = Place(line, match[0], fields)
        kind, *more = (_filled([word], fields) for word in _behind_prefix(rule)[1])
        try:
            self._check(rule.checks, place)
            return self.actor.next_hop(place, kind, *more)
        except ValueError as error:
            self.actor.wrong(line, f"{match[0]}: {error}")
            return None

    def _end(self) -> None:
        """What the whole text has to have, and the ends of its sections."""
        for left in self._open if self.grammar.closes else ():
            if left.section:
                self.actor.wrong(left.line, f"{left.text}, which is never ended")
        for above in (None, *self._sections.values()):
            inside = above.rule.inside if above and above.rule else self.grammar.rules
            for rule in inside:
                wanted = [v for v in rule.checks if v[0] in ("must", "iff")]
                fields, text = (above.fields, above.text) if above else ({}, "")
                if not wanted or (rule, above.key if above else "") in self._seen:
                    continue
                verb, *words = wanted[0]
                if self._holds(["if", *words] if verb == "iff" else words, fields):
                    missing = f"{text} without {rule.text}" if above else f"no line {rule.text}"
                    self.actor.wrong(above.line if above else 1, missing)
        for name, place in self._wanted:
            if name not in self.defined:
                self.actor.wrong(place.line, f"{place.text}, without {name}")
        for (_, *words), place in self._only:
            if not self._holds(words, place.fields):
                self.actor.unknown(place.line, place.text)

    def _holds(self, words: Sequence[str], fields: Fields) -> bool:
        """Whether `if D`, `unless D` or nothing holds."""
        if not words:
            return True
        names = _filled(words[1:], fields).split(" & ")
        return all(name in self.defined for name in names) is (words[0] == "if")


def _runs(label: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[_Run]:
    """Lines of one head that follow each other; all others between them."""
    starts = np.flatnonzero(np.diff(label, prepend=-2))
    for first, last in pairwise([*starts.tolist(), len(label)]):
        yield _Run(int(label[first]), first, last)


@lru_cache(1 << 16)
def _read(
    rules: tuple[GrammarRule, ...], text: str
) -> tuple[GrammarRule, Fields] | tuple[None, Fields]:
    """The first rule that reads a statement, and its fields."""
    for rule in rules:
        fields = rule.fields(text)
        if fields is not None:
            return rule, fields
    return None, {}


@lru_cache
def _behind_prefix(rule: GrammarRule) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """The pattern of what follows the prefix of a rule of routes, and its arguments."""
    whole = rule.pattern.pattern
    name = f"(?P<prefix{(PREFIX.search(rule.text) or ('', ''))[1]}>\\S+)\\ "
    (_, *words), *_ = rule.verbs
    return re.compile(whole[whole.index(name) + len(name) :]), tuple(words)


def _filled(words: Sequence[str], fields: Mapping[str, str]) -> str:
    text = " ".join(words)
    return ARGUMENT.sub(lambda name: fields.get(name[1], ""), text) if "<" in text else text


def _argument(word: str, fields: Mapping[str, str]) -> str | int:
    kind = word[0] if word[:2] in ("#<", "@<") else ""
    if found := ARGUMENT.fullmatch(word, len(kind)):
        text = fields.get(found[1], "")
    else:
        text = _filled([word[len(kind) :]], fields)
    return exact_number(text) if kind == "#" else Interface(text) if kind else text
