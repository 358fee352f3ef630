"""Reads a configuration by its grammar, from the first line to the last, as a device does.

The meaning of a line depends on what is above it: on the section that is open, and on what was
defined. A statement for which the grammar has no rule in its section is unknown. The engine checks
order and completeness, and calls the verbs of an *actor* for everything else.

A file may have tens of thousands of routes. So lines of routes that follow each other are a *run*:
its section is looked up once, and its lines are split by numpy.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from compilers.readers.emitted_forwarding import Interface
from compilers.readers.exact_text import bare, exact_number, indentation, strange
from compilers.readers.grammar.rules import (
    ENGINE_VERBS,
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
from inventory.problems import InputError

ARGUMENT = re.compile(r"<([a-z]+\d?)>")
NEVER = 1 << 60
"""The line of a definition that the file does not have."""


class Place(NamedTuple):
    """A statement in a file."""

    line: int
    text: str
    fields: Fields
    """The texts of its fields, and of the fields of the sections that it is in."""


class GrammarActor(Protocol):
    """Carries out the verbs of a grammar.

    The name of a verb is that of a method, which takes the place of the statement and the verb's
    arguments. The methods below are needed by the engine itself.
    """

    def wrong(self, line: int, text: str) -> None:
        """Note something that is missing, or understood and wrong."""

    def unknown(self, line: int, text: str) -> None:
        """Note a statement for which there is no rule."""

    def next_hop(self, place: Place, kind: str, *words: str) -> tuple[str, str] | None:
        """The table of a route, and a text that equal next hops share; None: it makes no sense.

        Args:
            place: the first route with this next hop; its text is what follows the prefix.
            kind: the first argument of the rule's verb.
            words: the other arguments.
        """


@dataclass(slots=True)
class _Open:
    """A line below which other lines may follow."""

    indent: int
    line: int
    text: str
    rule: GrammarRule | None
    """The rule that reads it; None: there is none."""
    fields: Fields
    path: str = ""
    """In a section that is taken whole: the statement, behind the sections that it is in."""
    has_lines: bool = False
    """Whether lines of its section were read."""
    has_close: bool = False
    """Whether the grammar has a word that closes sections of its kind only."""
    key: str = ""
    """What tells it from other sections: its text, or its line where many have that text, behind
    the keys of the sections that it is in."""

    @property
    def section(self) -> bool:
        """Whether a word has to end it, where sections are ended by words."""
        is_outermost = self.path == self.text
        return self.rule is not None and (self.has_lines or self.has_close or is_outermost)


_Section: TypeAlias = tuple[tuple[str, str], ...]
"""The fields of a section, and their texts."""


class _Run(NamedTuple):
    """Lines that follow each other and begin with the same head of routes."""

    head: int
    """The place of the head in the grammar; -1: these are lines of other statements."""
    first: int
    last: int
    """The places of the first line, and of the line behind the last."""


@dataclass(slots=True)
class TextEngine:
    """The reading of one text."""

    grammar: Grammar
    actor: GrammarActor
    defined: dict[str, int] = field(default_factory=dict)
    """The line of each definition."""
    statements: dict[str, int] = field(default_factory=dict)
    """The statements that are for other readers, with their lines: those of sections that are taken
    whole, and those of the verb `say`."""
    routes: dict[str, RouteLines] = field(default_factory=dict)
    """The routes of each table."""
    _open: list[_Open] = field(default_factory=list)
    """The open sections, the outermost first."""
    _sections: dict[tuple[GrammarRule, str], _Open] = field(default_factory=dict)
    """All sections, by rule and key."""
    _seen: set[tuple[GrammarRule, str]] = field(default_factory=set)
    """The rules that read a statement, each with the key of the section."""
    _only: list[tuple[Verb, Place]] = field(default_factory=list)
    """Statements that are right under a condition, which the whole text decides."""
    _wanted: list[tuple[str, Place]] = field(default_factory=list)
    """Definitions that have to be anywhere in the text."""
    _last: str = ""
    """The statement that nothing may follow, once it was read."""
    _single: dict[tuple[RouteHead, _Section], list[tuple[int, str]]] = field(default_factory=dict)
    """Routes that are not in a run, as they have other blanks before them."""

    def read(self, lines: TextLines, *, whole: bool = True) -> None:
        """Read lines, and have the actor carry out what they mean.

        Args:
            lines: of a file.
            whole: whether these are all lines of the file, so that statements can be missing.

        Raises:
            InputError: a rule of the grammar has a verb that nobody carries out.
        """
        _check_verbs(self.grammar, type(self.actor))
        runs: dict[tuple[RouteHead, _Section], list[np.ndarray[Any, Any]]] = {}
        for run in _runs(self._labels(lines)):
            places = np.arange(run.first, run.last)
            part = lines[places]
            if run.head < 0 or not (head := self._head(self.grammar.heads[run.head], part)):
                for number, text in part:
                    self._line(number, text)
            else:
                runs.setdefault((head, self._section()), []).append(places)
        for head, section in dict.fromkeys((*runs, *self._single)):
            none = np.zeros(0, np.int64)
            of_head = lines[np.concatenate((none, *runs.get((head, section), ())))]
            self._routes(head, of_head, section)
        if whole:
            self._end()

    def _labels(self, lines: TextLines) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """int64[n]: the place of the head of routes that a line begins with; -1: none."""
        label = np.full(len(lines.number), -1, np.int64)
        for number, head in reversed(list(enumerate(self.grammar.heads))):
            label[lines.beginning(head.text)] = number
            for plain in self.grammar.plain:
                if plain.startswith(head.text):
                    label[lines.beginning(plain)] = -1
        label[lines.strange()] = -1
        return label

    def _head(self, head: RouteHead, part: TextLines) -> RouteHead | None:
        """The head of a run in the section that is open; None where no routes belong there.

        Args:
            head: a head with the text that the lines begin with.
            part: the lines.
        """
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
        """Read one line."""
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
        if above and above.rule and above.rule.takes_all:
            self._take_whole(number, text, depth, above)
            return
        rule, fields = None, dict[str, str]()
        if above is None and not depth:
            rule, fields = _read(self.grammar.rules, text)
        elif above and above.rule:
            rule, fields = _read(above.rule.inside, text)
        if rule is None:
            self._unread(number, text, above)
            self._open.append(_Open(depth, number, text, None, {}))
        else:
            fields = (above.fields if above else {}) | fields
            self._statement(Place(number, text, fields), rule, depth, above)

    def _take_whole(self, number: int, text: str, depth: int, above: _Open) -> None:
        """Take a line as a statement, with its sections before it, in a section taken whole."""
        path = f"{above.path}{BETWEEN}{text}"
        above.has_lines = True
        self.statements.setdefault(path, number)
        kinds = [kind for kind in self.grammar.closes.values() if kind]
        has_close = any(text.startswith(f"{kind} ") for kind in kinds)
        self._open.append(
            _Open(depth, number, text, above.rule, above.fields, path, has_close=has_close)
        )

    def _statement(self, place: Place, rule: GrammarRule, depth: int, above: _Open | None) -> None:
        """Carry out what a statement means, and open its section.

        Args:
            place: the statement.
            rule: that reads it.
            depth: its indentation.
            above: the section that it is in.
        """
        number, text, fields = place
        self._seen.add((rule, above.key if above else ""))
        if rule.routes:
            head = next(head for head in self.grammar.heads if rule in head.rules)
            self._single.setdefault((head, self._section()), []).append((number, text))
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
            if rule.takes_all:
                self.statements.setdefault(text, number)

    def _leave(self, number: int, line: str) -> None:
        """Leave the sections that are not above a line, by its indentation."""
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
        """End a section by a word."""
        while self._open and self._open[-1].indent > indent:
            left = self._open.pop()
            if left.section:
                self.actor.wrong(number, f"{text}, before {left.text} is ended")
        kind = self.grammar.closes[text]
        if self._open and self._open[-1].indent == indent:
            left = self._open.pop()
            if not kind or f"{left.text} ".startswith(f"{kind} "):
                return
        self.actor.wrong(number, f"{text}, where no section {kind} is open".replace("  ", " "))

    def _unread(self, number: int, text: str, above: _Open | None) -> None:
        """Note a statement without a rule; one that negates a statement with a rule is wrong."""
        rules = above.rule.inside if above and above.rule else self.grammar.rules
        negated = text.removeprefix("no ")
        if negated != text and _read(rules, negated)[0]:
            self.actor.wrong(number, text)
        else:
            self.actor.unknown(number, text)

    def _check(self, checks: Sequence[Verb], place: Place) -> None:
        """Carry out the verbs of the engine; see `rules`."""
        for verb, *words in checks:
            name = _filled(words, place.fields)
            if verb == "define":
                self.defined.setdefault(name, place.line)
            elif verb == "say":
                self.statements.setdefault(place.text, place.line)
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
            elif verb == "only":
                self._only.append(((verb, *words), place))
            elif verb == "iff":
                self._only.append(((verb, "if", *words), place))

    def _routes(self, head: RouteHead, lines: TextLines, section: _Section) -> None:
        """Read the routes of a head in a section.

        Args:
            head: the beginning of the lines.
            lines: those in runs.
            section: its fields.
        """
        if len(lines.number):
            self._read_routes(head, lines, len(head.text), section)
        if single := self._single.get((head, section)):
            others = TextLines.of("".join(f"{line}\n" for _, line in single).encode())
            numbers = np.array([number for number, _ in single], np.int64)
            width = len(head.text) - head.rules[0].indent
            self._read_routes(head, others.numbered(numbers), width, section)

    def _read_routes(
        self, head: RouteHead, lines: TextLines, width: int, section: _Section
    ) -> None:
        """Read lines of routes: each different next hop is understood once.

        Args:
            head: the beginning of the lines.
            lines: the lines.
            width: bytes before the prefix.
            section: the fields of the section.
        """
        routes = RouteLines()
        families = {rule.in_ipv6 for rule in head.rules}
        routes.add(lines, width, head.rules[0].in_ipv6 if len(families) == 1 else None)
        texts_of_table: dict[str, dict[str, str]] = {}
        family_of: dict[str, bool | None] = {}
        for next_hop, line in routes.first_lines().items():
            for rule in head.rules if next_hop else ():
                if match := _behind_prefix(rule)[0].fullmatch(next_hop):
                    if understood := self._next_hop(rule, match, line, section):
                        table, text = understood
                        texts_of_table.setdefault(table, {})[next_hop] = text
                        family_of[next_hop] = rule.in_ipv6
                    break
        # Wrong are next hops that no rule reads, and prefixes of the other family than the rule's.
        suspects: Collection[str] = routes.next_hops
        if len(families) == 1:
            suspects = routes.next_hops.keys() - family_of.keys()
        for prefix, next_hop, line in routes.rows(*suspects):
            is_ipv6 = ":" in prefix
            if family_of.get(next_hop, not is_ipv6) not in (None, is_ipv6):
                self.actor.wrong(line, f"{bare(head.text)} {prefix} {next_hop}")
        for table, texts in texts_of_table.items():
            self.routes.setdefault(table, RouteLines()).absorb(routes.reworded(texts))

    def _next_hop(
        self, rule: GrammarRule, match: re.Match[str], line: int, section: _Section
    ) -> tuple[str, str] | None:
        """The table of a route, and a text that equal next hops share; None: it makes no sense."""
        own = {name: text for name, text in match.groupdict().items() if text is not None}
        fields = dict(section) | own
        place = Place(line, match[0], fields)
        kind, *words = (_filled([word], fields) for word in _behind_prefix(rule)[1])
        try:
            self._check(rule.checks, place)
            return self.actor.next_hop(place, kind, *words)
        except ValueError as error:
            self.actor.wrong(line, f"{match[0]}: {error}")
            return None

    def _end(self) -> None:
        """Note what only the end of the text shows: open sections, and statements that miss."""
        for left in self._open if self.grammar.closes else ():
            if left.section:
                self.actor.wrong(left.line, f"{left.text}, which is never ended")
        for rule in self.grammar.rules:
            if self._misses(rule, "", {}):
                self.actor.wrong(1, f"no line {rule.text}")
        for section in self._sections.values():
            for rule in section.rule.inside if section.rule else ():
                if self._misses(rule, section.key, section.fields):
                    self.actor.wrong(section.line, f"{section.text} without {rule.text}")
        for name, place in self._wanted:
            if name not in self.defined:
                self.actor.wrong(place.line, f"{place.text}, without {name}")
        for (_, *words), place in self._only:
            if not self._holds(words, place.fields):
                self.actor.unknown(place.line, place.text)

    def _misses(self, rule: GrammarRule, key: str, fields: Fields) -> bool:
        """Whether a section, by its key and fields, has no statement that a rule demands."""
        demands = [verb for verb in rule.checks if verb[0] in ("must", "iff")]
        if not demands or (rule, key) in self._seen:
            return False
        verb, *words = demands[0]
        return self._holds(["if", *words] if verb == "iff" else words, fields)

    def _holds(self, words: Sequence[str], fields: Fields) -> bool:
        """Whether a condition holds: `if D`, `unless D`, or none."""
        if not words:
            return True
        names = _filled(words[1:], fields).split(" & ")
        return all(name in self.defined for name in names) is (words[0] == "if")


def _runs(label: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[_Run]:
    """Lines of one head that follow each other, and the lines of no head between them.

    Args:
        label: int64[n], the head of each line, -1: none.
    """
    starts = np.flatnonzero(np.diff(label, prepend=-2))
    for first, last in pairwise([*starts.tolist(), len(label)]):
        yield _Run(int(label[first]), first, last)


@lru_cache(1 << 16)
def _read(
    rules: tuple[GrammarRule, ...], text: str
) -> tuple[GrammarRule, Fields] | tuple[None, Fields]:
    """The first rule that reads a statement, and the statement's fields; None: there is no rule."""
    for rule in rules:
        fields = rule.fields(text)
        if fields is not None:
            return rule, fields
    return None, {}


@lru_cache
def _check_verbs(grammar: Grammar, actor: type[GrammarActor]) -> None:
    """Pass where an actor has all verbs of a grammar.

    Raises:
        InputError: a rule has a verb that nobody carries out.
    """
    for rule in grammar.all_rules():
        for verb, *_ in () if rule.routes else rule.verbs:
            if not callable(getattr(actor, verb, None)):
                methods = (word for word in dir(actor) if word[0] != "_")
                near = get_close_matches(verb, [*ENGINE_VERBS, *methods], n=1)
                todo = f"write {near[0]}" if near else ""
                required = f"a verb of the engine or of {actor.__name__}"
                raise InputError.of(required, verb, todo, key=f"grammar, rule `{rule.text}`")


@lru_cache
def _behind_prefix(rule: GrammarRule) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """For a rule of routes: the pattern of what follows the prefix, and the verb's arguments."""
    whole = rule.pattern.pattern
    name = f"(?P<prefix{(PREFIX.search(rule.text) or ('', ''))[1]}>\\S+)\\ "
    (_, *words), *_ = rule.verbs
    return re.compile(whole[whole.index(name) + len(name) :]), tuple(words)


def _filled(words: Sequence[str], fields: Mapping[str, str]) -> str:
    """Words of a rule as one text, with the texts of fields."""
    text = " ".join(words)
    return ARGUMENT.sub(lambda name: fields.get(name[1], ""), text) if "<" in text else text


def _argument(word: str, fields: Mapping[str, str]) -> str | int:
    """An argument of a verb: a text, a number where it is `#<…>`, a port where it is `@<…>`."""
    kind = word[0] if word[:2] in ("#<", "@<") else ""
    if name := ARGUMENT.fullmatch(word, len(kind)):
        text = fields.get(name[1], "")
    else:
        text = _filled([word[len(kind) :]], fields)
    return exact_number(text) if kind == "#" else Interface(text) if kind else text
