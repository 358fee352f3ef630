"""AVD's structured config of a switch, as it follows from its configuration.

`templates/eos/avd.forms` has both forms of each statement. So the configuration is what is written
and read, and this is another form of it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from compilers.readers.exact_text import (
    bare,
    exact_lines,
    exact_number,
    indentation,
    read_exact,
)
from compilers.readers.grammar.rules import Fields, Grammar, GrammarRule, Verb
from compilers.readers.grammar.trees import tree_lines
from compilers.readers.text_lines import TextLines
from templates import TEMPLATES

CLI = "eos_cli"
"""The key of lines for which AVD has no key."""
STEP = re.compile(r"([\w<>]+)(?:\[(.*?)\])?(?:/|$)")
FIELD = re.compile(r"<([a-z]+)>")
COMMENT = "!"
ROUTES = ("static_routes", "ipv6_static_routes")
KEYS = {
    **dict.fromkeys((*ROUTES, "networks"), "prefix"),
    **{"sequence_numbers": "sequence", "neighbors": "ip_address", "entries": "match"},
}
"""What names the entries of lists."""
Tree = dict[str, Any]


@cache
def _rules() -> tuple[GrammarRule, ...]:
    return Grammar.of(read_exact(TEMPLATES / "eos" / "avd.forms")).rules


@cache
def _by_word(rules: tuple[GrammarRule, ...]) -> dict[str, list[GrammarRule]]:
    """Rules by the two words that their patterns begin with, or the one; "" for a field."""
    found: dict[str, list[GrammarRule]] = {}
    for rule in rules:
        words = rule.head.split(" ")[:2]
        if rule.head != rule.text and len(rule.head.split(" ")) < 3:
            words = words[:-1]  # what is before a field
        found.setdefault(" ".join(words), []).append(rule)
    return found


class _Step(NamedTuple):
    """A step of a place: a key, and what names the entry of its list."""

    key: str
    entry: tuple[tuple[str, str], ...] | None
    """Fields and their values; () for a new entry, None where the key has no list."""


@cache
def _steps(path: str) -> tuple[_Step, ...]:
    """The steps of a place: `ntp/servers[name=<server>]`."""
    found = []
    for step in STEP.finditer(path):
        pairs = (pair.partition("=") for pair in (step[2] or "").split(",") if pair)
        entry = None if step[2] is None else tuple((name, value) for name, _, value in pairs)
        found.append(_Step(step[1], entry))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Section:
    """A line, the rules of those below it (None: no rule fits it), and where these go."""

    indent: int
    rules: tuple[GrammarRule, ...] | None
    node: Tree


@dataclass(slots=True)
class _Forms:
    """A configuration, as far as it was read."""

    tree: Tree = field(default_factory=dict)
    entries: dict[tuple[object, ...], Tree] = field(default_factory=dict)
    """The entries of lists, by the list and the fields that name one."""
    rest: list[str] = field(default_factory=list)
    """The lines without a rule."""

    def read(self, text: str) -> None:
        """Read all lines."""
        top = _Section(-1, _rules(), self.tree)
        sections = [top]
        for line in exact_lines(text):
            statement = bare(line)
            if not statement or statement.startswith(COMMENT):
                continue
            indent = indentation(line)
            while sections[-1].indent >= indent:
                sections.pop()
            above = sections[-1]
            found = _fitting(above.rules, statement)
            if found is None:
                self.rest.append(line)
                sections.append(_Section(indent, None, above.node))
                continue
            rule, fields = found
            places = [self._put(above.node, verb, fields) for verb in rule.verbs]
            sections.append(_Section(indent, rule.inside, places[0]))

    def _put(self, node: Tree, verb: Verb, fields: Fields) -> Tree:
        """Put the value of a statement at its place, and return the mapping there."""
        path, *value = verb
        steps = _steps(path)
        for step in steps[:-1] if value else steps:
            node = self._step(node, step, fields)
        if value:
            key, put = _filled(steps[-1].key, fields), _value(value[0], fields)
            if steps[-1].entry == ():
                node.setdefault(key, []).append(put)
            else:
                node[key] = put
        return node

    def _step(self, node: Tree, step: _Step, fields: Fields) -> Tree:
        key = _filled(step.key, fields)
        if step.entry is None:
            found: Tree = node.setdefault(key, {})
            return found
        named = {name: _value(value, fields) for name, value in step.entry}
        listed = node.setdefault(key, [])
        at = id(listed), *named.values()
        if at not in self.entries:
            self.entries[at] = named
            listed.append(named)
        return self.entries[at]


def _fitting(
    rules: tuple[GrammarRule, ...] | None, statement: str
) -> tuple[GrammarRule, Fields] | None:
    """The first rule that reads a statement, and its fields."""
    if rules is None:
        return None
    by_word = _by_word(rules)
    words = statement.split(" ", 2)
    for known in (" ".join(words[:2]), words[0], ""):
        for rule in by_word.get(known, ()):
            if (fields := rule.fields(statement)) is not None:
                return rule, fields
    return None


def _filled(text: str, fields: Fields) -> str:
    return FIELD.sub(lambda name: fields[name[1]], text) if "<" in text else text


def _value(text: str, fields: Fields) -> str | int | bool:
    if text in ("true", "false"):
        return text == "true"
    number = text.startswith("#")
    filled = _filled(text.removeprefix("#"), fields)
    return exact_number(filled) if number else filled


def structured(text: str) -> Tree:
    """The structured config of a switch (eos_cli_config_gen), from its configuration."""
    forms = _Forms()
    forms.read(text)
    for key in ROUTES:
        if key in forms.tree:
            forms.tree[key].sort(key=_place)
    return forms.tree | ({CLI: "\n".join(forms.rest)} if forms.rest else {})


def _place(route: Tree) -> int:
    """Where AVD has a route: of management, then what discards, then the others."""
    if "distance" in route:
        return 2 if "vrf" in route else 1
    return 0 if "vrf" in route else 3


def differences(text: str, avd: str) -> Iterator[tuple[int, str, bool]]:
    """What a structured config says otherwise than a configuration.

    Args:
        text: the configuration.
        avd: the structured config.

    Yields:
        The line, the statement, and whether it is one that the configuration has not.

    Raises:
        JsonError: it is no JSON.
        ValueError: (line, text) a key is twice in a mapping.
    """
    said = list(_statements(tree_lines(avd, ROUTES, KEYS)))
    derived = json.dumps(structured(text), indent=2, sort_keys=True)
    wanted = list(_statements(tree_lines(derived, ROUTES, KEYS)))
    lacking = Counter(statement for _, statement in wanted)
    for line, statement in said:
        if lacking[statement]:
            lacking[statement] -= 1
        else:
            yield line, statement, True
    yield from ((0, f"nothing of {each}", False) for each in lacking.elements())


def _statements(lines: TextLines) -> Iterator[tuple[int, str]]:
    """The leaves of a tree, each behind what it is below; comments among commands say nothing."""
    above: list[tuple[int, str]] = []
    for number, line in lines:
        indent, text = indentation(line), bare(line)
        while above and above[-1][0] >= indent:
            above.pop()
        if text.startswith(f'{CLI} "'):
            commands = json.loads(text.removeprefix(f"{CLI} ")).split("\n")
            kept = (each for each in commands if bare(each) not in ("", COMMENT))
            text = f"{CLI} {json.dumps(list(kept))}"
        yield number, " / ".join([*(word for _, word in above), text])
        above.append((indent, text))
