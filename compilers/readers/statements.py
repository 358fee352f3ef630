"""Statements: the lines of a configuration, each behind those of the sections that it is in.

A *template* is a statement with fields: `router bgp <number> / neighbor <peer> remote-as <far>`.
Templates find statements, and say which ones have to be there; what none of them says is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from compilers.readers.emitted_forwarding import covering

BETWEEN = " / "
FIELD = re.compile(r"<([a-z]+)>")
NEIGHBOUR = re.compile(r" / neighbor (\S+)")
GROUP = re.compile(r"peer[- ]group (\S+)$")
PREFIXES = {"prefix", "pool", "via"}
"""Fields that are prefixes: a statement with another text there is unknown."""
Found = dict[str, str]
"""The texts of fields."""


class Statements:
    """Those of one file, each with its line; 0 where only the file is known."""

    def __init__(self, said: dict[str, int]) -> None:
        self.said = said
        self.missing: list[str] = []
        self._understood: set[str] = set()

    @classmethod
    def below(cls, said: dict[str, int], head: str = "", *, tree: bool = False) -> Statements:
        """Those of a text, without a word that all begin with.

        Args:
            said: statements, each behind those that it is below.
            head: the word.
            tree: they are those of JSON or YAML, where only leaves say something.
        """
        kept = {
            statement.replace('"', "") if tree else statement.removeprefix(head): line
            for (statement, line), after in zip(said.items(), [*list(said)[1:], ""], strict=True)
            if not (tree and after.startswith(f"{statement}{BETWEEN}"))
        }
        return cls(kept)

    def find(self, template: str, known: Found) -> Iterator[tuple[Found, int]]:
        """The statements of a template where some fields are known: all fields, and the line."""
        filled = _filled(template, known)
        if "<" not in filled:
            if filled in self.said:
                self._understood.add(filled)
                yield known, self.said[filled]
            return
        start = filled.partition("<")[0]
        given = {name: known[name] for name in FIELD.findall(template) if name in known}
        pattern = _pattern(template, frozenset(given.items()))
        for statement, line in self.said.items():
            if statement.startswith(start) and (match := pattern.fullmatch(statement)):
                found = match.groupdict()
                if all(covering(found[name]) for name in PREFIXES & found.keys()):
                    self._understood.add(statement)
                yield known | found, line

    def need(self, templates: Iterable[str], known: Found) -> Found:
        """Fields of statements that have to be there; those of one that is not are "0"."""
        for template in templates:
            found = next(self.find(template, known), None)
            if found is None:
                filled = _filled(template, known)
                self.missing.append(filled)
                found = (known | dict.fromkeys(FIELD.findall(filled), "0"), 0)
            known = found[0]
        return known

    def unknown(self) -> Iterator[tuple[int, str]]:
        """The line and the text of each statement that was not asked for."""
        for statement, line in self.said.items():
            if statement not in self._understood:
                yield line, statement

    def unmade(self, templates: Iterable[str]) -> Iterator[tuple[int, str]]:
        """Statements about a neighbour or a group above the one that makes it.

        Args:
            templates: of statements that make one, `peer`, perhaps of a `group`; none: any do.
        """
        patterns = [_pattern(template, frozenset()) for template in templates]
        made: set[str] = set()
        for statement, line in self.said.items() if patterns else ():
            about = NEIGHBOUR.search(statement)
            found = next(filter(None, (p.fullmatch(statement) for p in patterns)), None)
            group = GROUP.search(statement)
            if (group and group[1] not in made) or (about and not found and about[1] not in made):
                yield line, f"{statement}, above what makes it"
            if found:
                made.add(found["peer"])

    def lacking(self) -> Iterator[str]:
        """What is missing."""
        yield from (f"nothing of {statement}" for statement in dict.fromkeys(self.missing))


def _filled(template: str, known: Found) -> str:
    return FIELD.sub(lambda field: known.get(field[1], field[0]), template)


@lru_cache(1 << 12)
def _pattern(template: str, known: frozenset[tuple[str, str]]) -> re.Pattern[str]:
    texts = dict(known)
    literal, fields = FIELD.split(template)[::2], FIELD.findall(template)
    parts = [re.escape(literal[0])]
    seen: set[str] = set()
    for name, text in zip(fields, literal[1:], strict=True):
        if name in texts:
            parts.append(re.escape(texts[name]))
        else:
            parts.append(f"(?P={name})" if name in seen else rf"(?P<{name}>\S+)")
            seen.add(name)
        parts.append(re.escape(text))
    return re.compile("".join(parts))
