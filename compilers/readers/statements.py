"""Statements of a configuration, found by templates with fields.

A statement is a line behind the heads of the sections that it is in, with ` / ` between them:
`router bgp 65001 / neighbor 10.0.0.1 remote-as 65002`. A template is a statement with fields:
`router bgp <number> / neighbor <peer> remote-as <far>`. Readers of BGP and of SRv6 look for
statements by templates. A statement that fits no template is unknown; a statement that a template
needs and that is not there is missing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

from compilers.readers.emitted_forwarding import covering

BETWEEN = " / "
"""Separates the sections of a statement."""
FIELD = re.compile(r"<([a-z]+)>")
"""A field of a template, such as `<number>`."""
NEIGHBOUR = re.compile(r" / neighbor (\S+)")
"""The neighbour of a statement, such as `10.0.0.1` in `… / neighbor 10.0.0.1 remote-as 65002`."""
GROUP = re.compile(r"peer[- ]group (\S+)$")
"""The peer group at the end of a statement, such as `fabric` in `… peer-group fabric`."""
PREFIXES = {"prefix", "pool", "via"}
"""Fields that are prefixes: a statement with another text there is unknown."""
Fields = dict[str, str]
"""The texts of fields, by their names."""


class Statements:
    """The statements of one file, each with its line, 0 where only the file is known.

    >>> statements = Statements({"neighbor 10.0.0.1 remote-as 65002": 7, "shutdown": 8})
    >>> list(statements.find("neighbor <peer> remote-as <far>", {"peer": "10.0.0.1"}))
    [({'peer': '10.0.0.1', 'far': '65002'}, 7)]
    >>> list(statements.unread())
    [(8, 'shutdown')]
    """

    def __init__(self, lines: dict[str, int]) -> None:
        self.lines = lines
        """The line of each statement."""
        self.missing: list[str] = []
        """The statements that were needed and are not there, as templates with known fields."""
        self._understood: set[str] = set()
        """The statements that fit a template that was looked for."""

    @classmethod
    def without_command(cls, lines: dict[str, int], command: str) -> Statements:
        """The statements of a file without the command that they begin with, as Junos's `set `.

        Args:
            lines: the line of each statement.
            command: the command.
        """
        return cls({statement.removeprefix(command): line for statement, line in lines.items()})

    @classmethod
    def of_tree(cls, lines: dict[str, int]) -> Statements:
        """The statements of a file of JSON or YAML, where only leaves state something.

        Args:
            lines: the line of each statement. Those in a section follow the section's own.
        """
        following = [*list(lines)[1:], ""]
        leaves: dict[str, int] = {}
        for (statement, line), next_statement in zip(lines.items(), following, strict=True):
            is_section = next_statement.startswith(f"{statement}{BETWEEN}")
            if not is_section:
                leaves[statement.replace('"', "")] = line
        return cls(leaves)

    def find(self, template: str, known: Fields) -> Iterator[tuple[Fields, int]]:
        """Yield the fields of each statement that fits a template, and its line.

        Args:
            template: a statement with fields.
            known: the texts that some of the fields have to have; they are among the result.
        """
        # The template is cut at its first unknown field. Before it all is known text, with which a
        # statement that fits begins. The rest becomes a regular expression.
        position_of_unknown = (
            position for name, position in _fields(template) if name not in known
        )
        split = next(position_of_unknown, len(template))
        beginning, rest = _with_fields(template[:split], known), template[split:]
        if not rest:
            if beginning in self.lines:
                self._understood.add(beginning)
                yield known, self.lines[beginning]
            return
        known_in_rest = {name: known[name] for name, _ in _fields(rest) if name in known}
        pattern = _pattern(rest, frozenset(known_in_rest.items()))
        for statement in self._beginning_with(beginning):
            if match := pattern.fullmatch(statement, len(beginning)):
                fields = match.groupdict()
                if all(covering(fields[name]) for name in PREFIXES & fields.keys()):
                    self._understood.add(statement)
                yield known | fields, self.lines[statement]

    def _beginning_with(self, start: str) -> Iterable[str]:
        """The statements that begin with a text, in the order of the file."""
        if not start:
            return self.lines
        # In the order of their texts, statements that begin alike follow each other.
        first = end = bisect_left(self._sorted, start)
        while end < len(self._sorted) and self._sorted[end].startswith(start):
            end += 1
        return sorted(self._sorted[first:end], key=self._places.__getitem__)

    @cached_property
    def _sorted(self) -> list[str]:
        """The statements in the order of their texts."""
        return sorted(self.lines)

    @cached_property
    def _places(self) -> dict[str, int]:
        """The number of each statement in the file."""
        return {statement: number for number, statement in enumerate(self.lines)}

    def need(self, templates: Iterable[str], fields: Fields) -> Fields:
        """The fields of statements that have to be there.

        A statement that is not there is noted in `missing`. Its fields become "0", a number, so
        that reading goes on and finds further faults.

        Args:
            templates: of the statements.
            fields: those that are known before; they are among the result.
        """
        for template in templates:
            first = next(self.find(template, fields), None)
            if first is not None:
                fields, _ = first
            else:
                filled = _with_fields(template, fields)
                self.missing.append(filled)
                fields = fields | dict.fromkeys(FIELD.findall(filled), "0")
        return fields

    def unread(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the text of each statement that fits no template."""
        for statement, line in self.lines.items():
            if statement not in self._understood:
                yield line, statement

    def used_before_created(self, templates: Iterable[str]) -> Iterator[tuple[int, str]]:
        """Yield statements about a neighbour or a group that stand above the one that creates it.

        Args:
            templates: of the statements that create a neighbour or a group, with the field `peer`
                for its name; () where the system takes statements in any order.
        """
        patterns = [_pattern(template, frozenset()) for template in templates]
        created: set[str] = set()
        for statement, line in self.lines.items() if patterns else ():
            matches = (pattern.fullmatch(statement) for pattern in patterns)
            creation = next((match for match in matches if match), None)
            neighbour, group = NEIGHBOUR.search(statement), GROUP.search(statement)
            before_neighbour = neighbour and not creation and neighbour[1] not in created
            before_group = group and group[1] not in created
            if before_neighbour or before_group:
                yield line, f"{statement}, above what makes it"
            if creation:
                created.add(creation["peer"])

    def missing_texts(self) -> Iterator[str]:
        """Yield a text for each statement that is missing."""
        yield from (f"nothing of {statement}" for statement in dict.fromkeys(self.missing))


def _with_fields(template: str, known: Fields) -> str:
    """A template with the texts of its known fields."""
    return FIELD.sub(lambda field: known.get(field[1], field[0]), template)


@lru_cache(1 << 10)
def _fields(template: str) -> tuple[tuple[str, int], ...]:
    """The name of each field of a template, and where in the template it begins."""
    return tuple((field[1], field.start()) for field in FIELD.finditer(template))


@lru_cache(1 << 12)
def _pattern(template: str, known: frozenset[tuple[str, str]]) -> re.Pattern[str]:
    """The regular expression of a template; a field that occurs twice has one text."""
    texts = dict(known)
    # `split` gives the texts between fields and the names of fields in turn.
    first_text, *names_and_texts = FIELD.split(template)
    expression = re.escape(first_text)
    captured: set[str] = set()
    for name, text in zip(names_and_texts[::2], names_and_texts[1::2], strict=True):
        if name in texts:
            expression += re.escape(texts[name])
        elif name in captured:
            expression += f"(?P={name})"
        else:
            expression += rf"(?P<{name}>\S+)"
            captured.add(name)
        expression += re.escape(text)
    return re.compile(expression)
