"""The structured config of a switch for Arista's AVD, derived from its EOS configuration.

Ansible's collection arista.avd makes EOS configurations from YAML or JSON, which it calls the
structured config (role eos_cli_config_gen). polarfab renders the configuration, and translates each
of its statements here by the table `templates/eos/avd.forms`. Lines that the table does not have go
into AVD's key `eos_cli`, whose lines AVD copies.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from jinja2.utils import htmlsafe_json_dumps

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
PATH_STEP = re.compile(r"([\w<>]+)(?:\[(.*?)\])?(?:/|$)")
"""A step of a path: a key, and for lists what is in brackets, as in `servers[name=<server>]/`."""
FIELD = re.compile(r"<([a-z]+)>")
COMMENT = "!"
ROUTES = ("static_routes", "ipv6_static_routes")
KEYS = {
    **dict.fromkeys((*ROUTES, "networks"), "prefix"),
    **{"sequence_numbers": "sequence", "neighbors": "ip_address", "entries": "match"},
}
"""The key that names the entries of a list, by the key of the list."""
Tree = dict[str, Any]


@cache
def _rules() -> tuple[GrammarRule, ...]:
    """The rows of the table: patterns of statements, each with its places in AVD's tree."""
    return Grammar.of(read_exact(TEMPLATES / "eos" / "avd.forms")).rules


@cache
def _by_word(rules: tuple[GrammarRule, ...]) -> dict[str, list[GrammarRule]]:
    """Rules by the first two words of their patterns.

    A pattern with a field among these is found by the words before the field, which may be none.
    """
    by_word: dict[str, list[GrammarRule]] = {}
    for rule in rules:
        words = rule.head.split(" ")[:2]
        if rule.head != rule.text and len(rule.head.split(" ")) < 3:
            words = words[:-1]  # a field begins within the last word
        by_word.setdefault(" ".join(words), []).append(rule)
    return by_word


class _Step(NamedTuple):
    """A step of a path in AVD's tree: into a mapping, or into an entry of a list."""

    key: str
    entry: tuple[tuple[str, str], ...] | None
    """The keys that name the entry, with the patterns of their values; () for a new entry.

    None: the key has a mapping or a value, not a list."""


@cache
def _steps(path: str) -> tuple[_Step, ...]:
    """The steps of a path such as `ntp/servers[name=<server>]`.

    >>> for step in _steps("ntp/servers[name=<server>]"):
    ...     print(step)
    _Step(key='ntp', entry=None)
    _Step(key='servers', entry=(('name', '<server>'),))
    """
    steps = []
    for step in PATH_STEP.finditer(path):
        pairs = (pair.partition("=") for pair in (step[2] or "").split(",") if pair)
        entry = None if step[2] is None else tuple((name, value) for name, _, value in pairs)
        steps.append(_Step(step[1], entry))
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class _OpenStatement:
    """A statement below which the next lines may be, such as `interface Ethernet1`."""

    indent: int
    rules: tuple[GrammarRule, ...] | None
    """The rules of the lines below it; None: the statement itself has no rule."""
    node: Tree
    """The mapping in AVD's tree to which the paths of these rules are relative."""


@dataclass(slots=True)
class _Translation:
    """The structured config of the lines of a configuration that were translated so far."""

    tree: Tree = field(default_factory=dict)
    entries: dict[tuple[object, ...], Tree] = field(default_factory=dict)
    """The entries of lists, by the identity of the list and the values that name the entry."""
    without_rule: list[str] = field(default_factory=list)
    """The lines that the table does not have."""

    def translate(self, text: str) -> None:
        """Translate all lines of a configuration."""
        open_statements = [_OpenStatement(-1, _rules(), self.tree)]
        for line in exact_lines(text):
            statement = bare(line)
            if not statement or statement.startswith(COMMENT):
                continue
            indent = indentation(line)
            while open_statements[-1].indent >= indent:
                open_statements.pop()
            above = open_statements[-1]
            match = _matching_rule(above.rules, statement)
            if match is None:
                self.without_rule.append(line)
                open_statements.append(_OpenStatement(indent, None, above.node))
                continue
            rule, fields = match
            nodes = [self._put(above.node, verb, fields) for verb in rule.verbs]
            node = nodes[0] if nodes else above.node
            open_statements.append(_OpenStatement(indent, rule.inside, node))

    def _put(self, node: Tree, verb: Verb, fields: Fields) -> Tree:
        """Put the value of a statement at its path below a node.

        Args:
            node: the mapping from which the path starts.
            verb: the path and, where the statement has one, the pattern of the value.
            fields: the fields of the statement.

        Returns:
            The mapping that now has the value, or to which a path without a value leads.
        """
        path, *value = verb
        steps = _steps(path)
        for step in steps[:-1] if value else steps:
            node = self._step(node, step, fields)
        if value:
            key, filled = _filled(steps[-1].key, fields), _value(value[0], fields)
            if steps[-1].entry == ():
                node.setdefault(key, []).append(filled)
            else:
                node[key] = filled
        return node

    def _step(self, node: Tree, step: _Step, fields: Fields) -> Tree:
        """The mapping to which a step leads from a node; it is made if there is none."""
        key = _filled(step.key, fields)
        if step.entry is None:
            mapping: Tree = node.setdefault(key, {})
            return mapping
        entry = {name: _value(value, fields) for name, value in step.entry}
        entries = node.setdefault(key, [])
        identity = id(entries), *entry.values()
        if identity not in self.entries:
            self.entries[identity] = entry
            entries.append(entry)
        return self.entries[identity]


def _matching_rule(
    rules: tuple[GrammarRule, ...] | None, statement: str
) -> tuple[GrammarRule, Fields] | None:
    """The first rule that reads a statement, and its fields."""
    if rules is None:
        return None
    by_word = _by_word(rules)
    words = statement.split(" ", 2)
    for beginning in (" ".join(words[:2]), words[0], ""):
        for rule in by_word.get(beginning, ()):
            if (fields := rule.fields(statement)) is not None:
                return rule, fields
    return None


def _filled(text: str, fields: Fields) -> str:
    """A text with the values of fields in the place of `<field>`."""
    return FIELD.sub(lambda name: fields[name[1]], text) if "<" in text else text


def _value(text: str, fields: Fields) -> str | int | bool:
    """A value of the tree from its pattern: `true`, `false`, a number after `#`, or a text."""
    if text in ("true", "false"):
        return text == "true"
    number = text.startswith("#")
    filled = _filled(text.removeprefix("#"), fields)
    return exact_number(filled) if number else filled


def structured(text: str) -> Tree:
    """The structured config of a switch (eos_cli_config_gen), from its configuration."""
    translation = _Translation()
    translation.translate(text)
    tree = translation.tree
    for key in ROUTES:
        if key in tree:
            tree[key].sort(key=_route_order)
    if translation.without_rule:
        return tree | {CLI: "\n".join(translation.without_rule)}
    return tree


def _route_order(route: Tree) -> int:
    """The order of static routes: of management, then those that discard, then the others.

    Routes of management have a VRF and no distance, those that discard have a distance.
    """
    discards = "distance" in route
    if discards:
        return 2 if "vrf" in route else 1
    return 0 if "vrf" in route else 3


def differences(text: str, avd: str) -> Iterator[tuple[int, str, bool]]:
    """The statements in which a structured config differs from that of a configuration.

    Args:
        text: the configuration.
        avd: the structured config.

    Yields:
        The line, the statement, and whether it is one that the configuration has not.

    Raises:
        JsonError: the structured config is no JSON.
        ValueError: (line, text) a key is twice in a mapping.
    """
    derived = str(htmlsafe_json_dumps(structured(text), indent=2, sort_keys=True))
    if avd.rstrip("\n") == derived:
        return
    present = list(_statements(tree_lines(avd, ROUTES, KEYS)))
    expected = _statements(tree_lines(derived, ROUTES, KEYS))
    missing = Counter(statement for _, statement in expected)
    for line, statement in present:
        if missing[statement]:
            missing[statement] -= 1
        else:
            yield line, statement, True
    yield from ((0, f"nothing of {statement}", False) for statement in missing.elements())


def _statements(lines: TextLines) -> Iterator[tuple[int, str]]:
    """The line and the text of each leaf of a tree: `ntp / servers / …`.

    Comments and empty lines among the commands of `eos_cli` are left out.
    """
    above: list[tuple[int, str]] = []
    for number, line in lines:
        indent, text = indentation(line), bare(line)
        while above and above[-1][0] >= indent:
            above.pop()
        if text.startswith(f'{CLI} "'):
            commands = json.loads(text.removeprefix(f"{CLI} ")).split("\n")
            kept = [command for command in commands if bare(command) not in ("", COMMENT)]
            text = f"{CLI} {json.dumps(kept)}"
        yield number, " / ".join([*(word for _, word in above), text])
        above.append((indent, text))
