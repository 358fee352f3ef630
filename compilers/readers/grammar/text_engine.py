"""Reads a configuration by its grammar, from the first line to the last, as a device does.

What comes in are a `Grammar` and the lines of a file. What goes out are calls of an *actor*, which
has a method for each verb of the grammar, and what the engine finds itself: definitions, statements
for other readers, and routes (`TextEngine`).

The meaning of a line depends on what is above it: on the section that is open, and on what was
defined. A statement for which the grammar has no rule in its section is unknown. The engine checks
order and completeness, and leaves everything else to the actor.

A file may have tens of thousands of routes. So lines of routes that follow each other are a *run*.
The section of a run is looked up once, and numpy splits its lines.

Example: by the rule `hostname <name> => fact hostname <name>`, the line `hostname leaf-1` has the
actor carry out the verb `fact` with the arguments `hostname` and `leaf-1`. By the rule `ip route
<prefix> <via.> => route <via>`, lines `ip route 10.0.0.0/24 10.9.0.1` are lines of routes. They
share the *head* `ip route `, and what is behind the prefix is the next hop, `10.9.0.1`.

*Facts* and *definitions* are explained in `rules`. `router_files` and the readers of target linux,
frr and bird make a `TextEngine` for each file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

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
"""A field among the arguments of a verb, such as `<address>`."""
NO_HEAD = -1
"""In place of the index of a head: a line does not begin as routes do."""
NEVER = 1 << 60
"""The line of a definition that the file does not have."""


class Statement(NamedTuple):
    """A statement in a file."""

    line: int
    """The number of the line."""
    text: str
    """The line without the blanks around it."""
    fields: Fields
    """The texts of its fields, and of the fields of the sections that it is in."""


class GrammarActor(Protocol):
    """Carries out the verbs of a grammar.

    The name of a verb is that of a method, which takes the statement and the verb's arguments. The
    methods below are needed by the engine itself.
    """

    def add_wrong(self, line: int, text: str) -> None:
        """Note something that is missing, or understood and wrong."""

    def add_unread(self, line: int, text: str) -> None:
        """Note a statement for which there is no rule."""

    def next_hop(self, statement: Statement, kind: str, *words: str) -> tuple[str, str] | None:
        """The table of a route, and a text that equal next hops share; None: it makes no sense.

        Args:
            statement: the first route with this next hop; its text is what follows the prefix.
            kind: the first argument of the rule's verb.
            words: the other arguments.
        """


class _Line(NamedTuple):
    """A line of the file."""

    number: int
    """The number of the line."""
    text: str
    """The line without the blanks around it."""
    indent: int
    """How many blanks it begins with."""

    @classmethod
    def of(cls, number: int, line: str) -> _Line:
        """The line of a number."""
        return cls(number, bare(line), indentation(line))


@dataclass(slots=True)
class _OpenSection:
    """A line that opens a section, below which other lines may follow."""

    line: _Line
    """The line."""
    rule: GrammarRule | None
    """The rule that reads it; None: there is none."""
    fields: Fields
    """The texts of the fields of the line, and of the sections that it is in."""
    path: str = ""
    """In a section that is taken whole: the statement, behind the sections that it is in."""
    has_lines: bool = False
    """Whether lines of its section were read."""
    has_own_end: bool = False
    """Whether the grammar has a word that ends only sections of its kind."""
    key: str = ""
    """The key of the section: its text, or its line where many have that text, behind the keys of
    the sections that it is in."""

    @property
    def needs_end(self) -> bool:
        """Whether a word has to end it, where sections are ended by words."""
        is_outermost = self.path == self.line.text
        return self.rule is not None and (self.has_lines or self.has_own_end or is_outermost)


class _RoutePlace(NamedTuple):
    """Where lines of routes belong."""

    head: RouteHead
    """The beginning of the lines."""
    section_fields: tuple[tuple[str, str], ...]
    """The fields of the section that they are in, and their texts."""


class _RuleMatch(NamedTuple):
    """A rule that reads a statement."""

    rule: GrammarRule
    """The rule."""
    fields: Fields
    """The fields of the statement."""


class _RouteMatch(NamedTuple):
    """A rule that reads the next hop of a route."""

    rule: GrammarRule
    """The rule."""
    match: re.Match[str]
    """The match of its pattern, from behind the prefix on, with the next hop."""


class _NextHopForm(NamedTuple):
    """What a rule of routes says of the next hop, which is everything behind the prefix."""

    pattern: re.Pattern[str]
    """The pattern of its text."""
    arguments: tuple[str, ...]
    """The arguments of the rule's verb."""


class _Run(NamedTuple):
    """Lines that follow each other and begin with the same head of routes."""

    head: int
    """The index of the head in `Grammar.route_heads`; NO_HEAD: these are lines of other
    statements."""
    first: int
    """The index of the first line."""
    end: int
    """The index of the line behind the last."""


@dataclass(slots=True)
class TextEngine:
    """The reading of one text."""

    grammar: Grammar
    """The grammar of the file."""
    actor: GrammarActor
    """Carries out the verbs of the grammar."""
    definition_lines: dict[str, int] = field(default_factory=dict)
    """The line of each definition."""
    statement_lines: dict[str, int] = field(default_factory=dict)
    """The lines of the statements for other readers, by text: statements of sections that are taken
    whole, and statements with the verb `say`."""
    routes: dict[str, RouteLines] = field(default_factory=dict)
    """The routes of each table."""
    _open_sections: list[_OpenSection] = field(default_factory=list)
    """The open sections, the outermost first."""
    _all_sections: dict[tuple[GrammarRule, str], _OpenSection] = field(default_factory=dict)
    """All sections, by rule and key."""
    _matched_rules: set[tuple[GrammarRule, str]] = field(default_factory=set)
    """The rules that read a statement, each with the key of the section."""
    _conditional_statements: list[tuple[Verb, Statement]] = field(default_factory=list)
    """Statements with the verb `only` or `iff`, each behind this verb and its arguments. The whole
    text decides whether they are right."""
    _awaited_definitions: list[tuple[str, Statement]] = field(default_factory=list)
    """Definitions that have to be anywhere in the text, each with the statement that wants it."""
    _final_statement: str = ""
    """The statement with the verb `last`, which nothing may follow; "" before it is read."""
    _single_routes: dict[_RoutePlace, list[tuple[int, str]]] = field(default_factory=dict)
    """Routes that are in no run, as they have other blanks before them: line and text."""

    def read(self, lines: TextLines, *, whole: bool = True) -> None:
        """Read lines, and have the actor carry out what they mean.

        Args:
            lines: the lines.
            whole: whether these are all lines of the file, so that statements can be missing.

        Raises:
            InputError: a rule of the grammar has a verb that nobody carries out.
        """
        _check_verbs(self.grammar, type(self.actor))
        # The indices of the lines of each run, by the place of their routes.
        runs: dict[_RoutePlace, list[np.ndarray[Any, Any]]] = {}
        for run in _runs(self._heads_of_lines(lines)):
            indices = np.arange(run.first, run.end)
            place = self._place_of_run(run, lines[indices])
            if place is None:
                for number, text in lines[indices]:
                    self._read_line(_Line.of(number, text))
            else:
                runs.setdefault(place, []).append(indices)
        no_lines = np.zeros(0, np.int64)
        for place in dict.fromkeys((*runs, *self._single_routes)):
            indices_of_place = np.concatenate((no_lines, *runs.get(place, ())))
            self._read_routes_of_place(place, lines[indices_of_place])
        if whole:
            self._note_faults_at_end()

    def _heads_of_lines(self, lines: TextLines) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """int64[n]: the index of the head of routes that each line begins with, or NO_HEAD."""
        head_of_line = np.full(len(lines.number), NO_HEAD, np.int64)
        # The longest head of a line decides. It is the first in the grammar, and so the last here.
        for number, head in reversed(list(enumerate(self.grammar.route_heads))):
            head_of_line[lines.begin_with(head.text)] = number
            for beginning in self.grammar.statement_heads:
                if beginning.startswith(head.text):
                    head_of_line[lines.begin_with(beginning)] = NO_HEAD
        head_of_line[lines.strange()] = NO_HEAD
        return head_of_line

    def _place_of_run(self, run: _Run, lines: TextLines) -> _RoutePlace | None:
        """Where the routes of a run belong; None: the lines are to be read one by one.

        They are no routes if no rule of the open section begins as they do.

        Args:
            run: the run.
            lines: its lines.
        """
        if run.head == NO_HEAD:
            return None
        head = self.grammar.route_heads[run.head]
        first_line = _Line.of(*next(iter(lines)))
        self._leave_sections(first_line)
        if head.section is None and self._final_statement:
            self._note_behind_final(first_line)
        section = self._innermost()
        if section and section.rule is None:
            return None
        section_rule = section.rule if section else None
        for head_in_section in self.grammar.route_heads:
            if head_in_section.text == head.text and head_in_section.section is section_rule:
                return _RoutePlace(head_in_section, self._section_fields())
        return None

    def _innermost(self) -> _OpenSection | None:
        """The innermost section that is open; None: none is."""
        return self._open_sections[-1] if self._open_sections else None

    def _section_fields(self) -> tuple[tuple[str, str], ...]:
        """The fields of the innermost section, and their texts."""
        section = self._innermost()
        return tuple(section.fields.items()) if section else ()

    def _read_line(self, line: _Line) -> None:
        """Read one line that is not in a run of routes."""
        if not line.text or line.text[0] in self.grammar.comment:
            return
        if strange(line.text):
            self.actor.add_unread(line.number, line.text)
        elif line.text in self.grammar.section_ends:
            self._close_section(line)
        else:
            if self._final_statement:
                self._note_behind_final(line)
            self._leave_sections(line)
            self._read_statement(line)

    def _note_behind_final(self, line: _Line) -> None:
        """Note a line behind the statement that nothing may follow."""
        self.actor.add_wrong(line.number, f"{line.text}, behind {self._final_statement}")

    def _read_statement(self, line: _Line) -> None:
        """Read a line as a statement in the innermost section."""
        section = self._innermost()
        if section and section.rule and section.rule.takes_section:
            self._take_whole(line, section)
            return
        if section is None:
            rules = self.grammar.rules if line.indent == 0 else ()
        else:
            rules = section.rule.section_rules if section.rule else ()
        match = _rule_for(rules, line.text)
        if match is None:
            self._note_unread(line, section)
            self._open_sections.append(_OpenSection(line, None, {}))
        else:
            fields = (section.fields if section else {}) | match.fields
            self._apply_rule(match.rule, line, fields, section)

    def _take_whole(self, line: _Line, section: _OpenSection) -> None:
        """Take a line of a section that is taken whole as a statement for other readers."""
        path = f"{section.path}{BETWEEN}{line.text}"
        section.has_lines = True
        self.statement_lines.setdefault(path, line.number)
        kinds = [kind for kind in self.grammar.section_ends.values() if kind]
        has_own_end = any(line.text.startswith(f"{kind} ") for kind in kinds)
        self._open_sections.append(
            _OpenSection(line, section.rule, section.fields, path, has_own_end=has_own_end)
        )

    def _apply_rule(
        self, rule: GrammarRule, line: _Line, fields: Fields, section: _OpenSection | None
    ) -> None:
        """Carry out what a statement means, and open its section.

        Args:
            rule: the rule that reads the statement.
            line: the line of the statement.
            fields: the fields of the statement, and of the sections that it is in.
            section: the innermost of these.
        """
        self._matched_rules.add((rule, section.key if section else ""))
        if rule.is_of_routes:
            head = next(head for head in self.grammar.route_heads if rule in head.rules)
            place = _RoutePlace(head, self._section_fields())
            self._single_routes.setdefault(place, []).append((line.number, line.text))
            return
        statement = Statement(line.number, line.text, fields)
        try:
            self._carry_out(rule.checks, statement)
            for verb, *words in rule.verbs:
                getattr(self.actor, verb)(statement, *(_argument(word, fields) for word in words))
        except ValueError as error:
            self.actor.add_wrong(line.number, f"{line.text}: {error}")
        if rule.opens_section:
            self._open_section(rule, line, fields, section)

    def _open_section(
        self, rule: GrammarRule, line: _Line, fields: Fields, outer: _OpenSection | None
    ) -> None:
        """Open the section of a statement (arguments as in `_apply_rule`)."""
        # Sections of a rule without fields have one text, so the line tells them apart.
        name = line.text if rule.pattern.groupindex else f"{line.number}"
        key = f"{outer.key}{BETWEEN}{name}" if outer else name
        section = _OpenSection(line, rule, fields, line.text, key=key)
        self._open_sections.append(section)
        self._all_sections.setdefault((rule, key), section)
        if rule.takes_section:
            self.statement_lines.setdefault(line.text, line.number)

    def _leave_sections(self, line: _Line) -> None:
        """Leave the sections that a line is not in, by its indentation."""
        while self._open_sections and self._open_sections[-1].line.indent >= line.indent:
            section = self._open_sections.pop()
            if self.grammar.section_ends and section.needs_end:
                text = f"{line.text}, before {section.line.text} is ended"
                self.actor.add_wrong(line.number, text)
            elif not self.grammar.tree_format and self._is_read_inside(line, section):
                text = f"{line.text}, which is read as part of {section.line.text}"
                self.actor.add_wrong(line.number, text)

    @staticmethod
    def _is_read_inside(line: _Line, section: _OpenSection) -> bool:
        """Whether a device reads a line in a section, though it is indented as the section is.

        The device tries the section that is open first, whatever a line's indentation.
        """
        if section.rule is None or section.line.indent != line.indent:
            return False
        return _rule_for(section.rule.section_rules, line.text) is not None

    def _close_section(self, line: _Line) -> None:
        """End a section by a word."""
        while self._open_sections and self._open_sections[-1].line.indent > line.indent:
            inner = self._open_sections.pop()
            if inner.needs_end:
                text = f"{line.text}, before {inner.line.text} is ended"
                self.actor.add_wrong(line.number, text)
        kind = self.grammar.section_ends[line.text]
        if self._open_sections and self._open_sections[-1].line.indent == line.indent:
            closed = self._open_sections.pop()
            if not kind or f"{closed.line.text} ".startswith(f"{kind} "):
                return
        section = f"section {kind}" if kind else "section"
        self.actor.add_wrong(line.number, f"{line.text}, where no {section} is open")

    def _note_unread(self, line: _Line, section: _OpenSection | None) -> None:
        """Note a statement without a rule; one that negates a statement with a rule is wrong."""
        rules = section.rule.section_rules if section and section.rule else self.grammar.rules
        negated = line.text.removeprefix("no ")
        if negated != line.text and _rule_for(rules, negated):
            self.actor.add_wrong(line.number, line.text)
        else:
            self.actor.add_unread(line.number, line.text)

    def _carry_out(self, checks: Sequence[Verb], statement: Statement) -> None:
        """Carry out the verbs of the engine; see `rules`."""
        for verb, *words in checks:
            name = _with_fields(words, statement.fields)
            if verb == "define":
                self.definition_lines.setdefault(name, statement.line)
            elif verb == "say":
                self.statement_lines.setdefault(statement.text, statement.line)
            elif verb == "last":
                self._final_statement = statement.text
            elif verb == "wants":
                self._awaited_definitions.append((name, statement))
            elif verb == "needs" and self.definition_lines.get(name, NEVER) > statement.line:
                self.actor.add_wrong(statement.line, f"{statement.text}, before {name}")
            elif verb == "absent" and name in self.definition_lines:
                self.actor.add_wrong(statement.line, f"{statement.text}, behind {name}")
            elif verb == "range":
                self._check_range(statement, *name.split(" "))
            elif verb == "only":
                self._conditional_statements.append(((verb, *words), statement))
            elif verb == "iff":
                self._conditional_statements.append(((verb, "if", *words), statement))

    def _check_range(self, statement: Statement, low: str, high: str, value: str = "") -> None:
        """Note a statement whose number is outside a range; "" for a number that is left out."""
        if value and not int(low) <= exact_number(value) <= int(high):
            self.actor.add_wrong(statement.line, f"{statement.text}, not from {low} to {high}")

    def _read_routes_of_place(self, place: _RoutePlace, lines: TextLines) -> None:
        """Read the routes of a place.

        Args:
            place: where they belong.
            lines: the lines that are in runs.
        """
        head = place.head
        if len(lines.number):
            self._read_routes(place, lines, len(head.text))
        if single := self._single_routes.get(place):
            outside_runs = TextLines.of("".join(f"{line}\n" for _, line in single).encode())
            numbers = np.array([number for number, _ in single], np.int64)
            width = len(head.text) - head.rules[0].indent
            self._read_routes(place, outside_runs.numbered(numbers), width)

    def _read_routes(self, place: _RoutePlace, lines: TextLines, width: int) -> None:
        """Read lines of routes: each different next hop is understood once.

        Args:
            place: where the routes belong.
            lines: the lines.
            width: how many bytes are before the prefix.
        """
        routes, head = RouteLines(), place.head
        families = {rule.is_ipv6 for rule in head.rules}
        routes.add(lines, width, head.rules[0].is_ipv6 if len(families) == 1 else None)
        # By table, the text that the actor gives each next hop.
        texts_of_table: dict[str, dict[str, str]] = {}
        rule_of_next_hop: dict[str, GrammarRule] = {}
        for next_hop, line in routes.first_lines().items():
            match = _rule_of_next_hop(head, next_hop)
            meaning = self._next_hop_meaning(match, line, place) if match else None
            if match and meaning:
                table, text = meaning
                texts_of_table.setdefault(table, {})[next_hop] = text
                rule_of_next_hop[next_hop] = match.rule
        self._note_wrong_routes(head, routes, rule_of_next_hop)
        for table, texts in texts_of_table.items():
            self.routes.setdefault(table, RouteLines()).absorb(routes.with_next_hops(texts))

    def _note_wrong_routes(
        self, head: RouteHead, routes: RouteLines, rule_of_next_hop: Mapping[str, GrammarRule]
    ) -> None:
        """Note routes whose next hop no rule reads, or whose prefix is not of the rule's family.

        Args:
            head: the beginning of the lines.
            routes: their routes.
            rule_of_next_hop: the rule that reads each next hop, if there is one.
        """
        if len({rule.is_ipv6 for rule in head.rules}) == 1:
            # `RouteLines.add` gave prefixes of the other family a next hop that no rule reads.
            suspects: Collection[str] = routes.next_hops.keys() - rule_of_next_hop.keys()
        else:
            suspects = routes.next_hops
        for prefix, next_hop, line in routes.rows(*suspects):
            rule = rule_of_next_hop.get(next_hop)
            if rule is None or rule.is_ipv6 not in (None, ":" in prefix):
                self.actor.add_wrong(line, f"{bare(head.text)} {prefix} {next_hop}")

    def _next_hop_meaning(
        self, route: _RouteMatch, line: int, place: _RoutePlace
    ) -> tuple[str, str] | None:
        """The table of a route, and a text that equal next hops share; None: it makes no sense."""
        fields = dict(place.section_fields)
        of_route = route.match.groupdict()
        fields |= {name: text for name, text in of_route.items() if text is not None}
        statement = Statement(line, route.match[0], fields)
        arguments = _next_hop_form(route.rule).arguments
        kind, *words = (_with_fields([word], fields) for word in arguments)
        try:
            self._carry_out(route.rule.checks, statement)
            return self.actor.next_hop(statement, kind, *words)
        except ValueError as error:
            self.actor.add_wrong(line, f"{statement.text}: {error}")
            return None

    def _note_faults_at_end(self) -> None:
        """Note faults that only the end of the text shows: open sections, missing statements."""
        for section in self._open_sections if self.grammar.section_ends else ():
            if section.needs_end:
                line = section.line
                self.actor.add_wrong(line.number, f"{line.text}, which is never ended")
        for rule in self.grammar.rules:
            if self._lacks(rule, "", {}):
                self.actor.add_wrong(1, f"no line {rule.text}")
        for section in self._all_sections.values():
            for rule in section.rule.section_rules if section.rule else ():
                if self._lacks(rule, section.key, section.fields):
                    line = section.line
                    self.actor.add_wrong(line.number, f"{line.text} without {rule.text}")
        for name, statement in self._awaited_definitions:
            if name not in self.definition_lines:
                self.actor.add_wrong(statement.line, f"{statement.text}, without {name}")
        for (_, *words), statement in self._conditional_statements:
            if not self._condition_holds(words, statement.fields):
                self.actor.add_unread(statement.line, statement.text)

    def _lacks(self, rule: GrammarRule, key: str, fields: Fields) -> bool:
        """Whether a section, by its key and fields, has no statement that a rule demands."""
        demands = [verb for verb in rule.checks if verb[0] in ("must", "iff")]
        if not demands or (rule, key) in self._matched_rules:
            return False
        verb, *words = demands[0]
        return self._condition_holds(["if", *words] if verb == "iff" else words, fields)

    def _condition_holds(self, words: Sequence[str], fields: Fields) -> bool:
        """Whether a condition holds: `if D`, `unless D`, or none."""
        if not words:
            return True
        names = _with_fields(words[1:], fields).split(" & ")
        return all(name in self.definition_lines for name in names) is (words[0] == "if")


def _runs(head_of_line: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[_Run]:
    """Yield runs of lines with one head, and the lines without a head between them.

    Args:
        head_of_line: int64[n], the index of the head of each line, or NO_HEAD.
    """
    # The value before the first line is that of no line, so the first line begins a run.
    starts = np.flatnonzero(np.diff(head_of_line, prepend=NO_HEAD - 1))
    for first, end in pairwise([*starts.tolist(), len(head_of_line)]):
        yield _Run(int(head_of_line[first]), first, end)


@lru_cache(1 << 16)
def _rule_for(rules: tuple[GrammarRule, ...], text: str) -> _RuleMatch | None:
    """The first rule that reads a statement; None: there is none."""
    for rule in rules:
        fields = rule.fields(text)
        if fields is not None:
            return _RuleMatch(rule, fields)
    return None


def _rule_of_next_hop(head: RouteHead, next_hop: str) -> _RouteMatch | None:
    """The first rule of a head that reads a next hop; None: there is none, or no next hop."""
    for rule in head.rules if next_hop else ():
        if match := _next_hop_form(rule).pattern.fullmatch(next_hop):
            return _RouteMatch(rule, match)
    return None


@lru_cache
def _check_verbs(grammar: Grammar, actor: type[GrammarActor]) -> None:
    """Pass where an actor has all verbs of a grammar.

    Raises:
        InputError: a rule has a verb that nobody carries out.
    """
    for rule in grammar.all_rules():
        for verb, *_ in () if rule.is_of_routes else rule.verbs:
            if not callable(getattr(actor, verb, None)):
                methods = (word for word in dir(actor) if word[0] != "_")
                near = get_close_matches(verb, [*ENGINE_VERBS, *methods], n=1)
                todo = f"write {near[0]}" if near else ""
                required = f"a verb of the engine or of {actor.__name__}"
                raise InputError.of(required, verb, todo, key=f"grammar, rule `{rule.text}`")


@lru_cache
def _next_hop_form(rule: GrammarRule) -> _NextHopForm:
    """What a rule of routes says of the next hop."""
    pattern = rule.pattern.pattern
    field_of_prefix = PREFIX.search(rule.text)
    version = field_of_prefix[1] if field_of_prefix else ""  # "4", "6" or "", as in `<prefix4>`
    prefix_and_blank = f"(?P<prefix{version}>\\S+)\\ "
    begin = pattern.index(prefix_and_blank) + len(prefix_and_blank)
    _, *arguments = rule.verbs[0]
    return _NextHopForm(re.compile(pattern[begin:]), tuple(arguments))


def _with_fields(words: Sequence[str], fields: Mapping[str, str]) -> str:
    """Words of a rule as one text, with the texts of fields."""
    text = " ".join(words)
    return ARGUMENT.sub(lambda name: fields.get(name[1], ""), text) if "<" in text else text


def _argument(word: str, fields: Mapping[str, str]) -> str | int:
    """An argument of a verb: a text, a number where it is `#<…>`, a port where it is `@<…>`."""
    kind = word[0] if word[:2] in ("#<", "@<") else ""
    if name := ARGUMENT.fullmatch(word, len(kind)):
        text = fields.get(name[1], "")
    else:
        text = _with_fields([word[len(kind) :]], fields)
    if kind == "#":
        return exact_number(text)
    return Interface(text) if kind == "@" else text
