"""The structured config of a switch for Arista's AVD, derived from its EOS configuration.

Ansible's collection arista.avd makes EOS configurations from YAML or JSON, which it calls the
structured config (role eos_cli_config_gen). polarfab renders the configuration, and
`structured_config` translates each statement of it into a tree, by the table
`templates/eos/avd.forms`: a row of the table is a pattern of a statement, with the paths in the
tree to which its values go. Lines without a row go into AVD's key `eos_cli`, whose lines AVD
copies. `differences` reads a rendered avd.json back and compares it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
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
"""`servers[name=<server>]/`: a step of a path, which is a key, and for a list brackets."""
FIELD = re.compile(r"<([a-z]+)>")
"""`<server>`: a field of a statement, in a path or value."""
COMMENT = "!"
"""The sign with which a comment of EOS begins."""
ROUTE_LISTS = ("static_routes", "ipv6_static_routes")
"""The keys of the lists of static routes."""
KEYS = {
    "static_routes": "prefix",
    "ipv6_static_routes": "prefix",
    "networks": "prefix",
    "sequence_numbers": "sequence",
    "neighbors": "ip_address",
    "entries": "match",
}
"""By the key of a list, the key whose value names an entry of the list."""
NO_LINE = 0
"""The line of a statement that the JSON does not have."""
Tree = dict[str, Any]
"""A mapping of AVD's tree."""


@cache
def _rules() -> tuple[GrammarRule, ...]:
    """The rows of the table `avd.forms`."""
    return Grammar.of(read_exact(TEMPLATES / "eos" / "avd.forms")).rules


@cache
def _by_first_words(rules: tuple[GrammarRule, ...]) -> dict[str, list[GrammarRule]]:
    """Rules by the first two words of their patterns.

    A pattern that has a field among its first two words is listed under the words before the field,
    if any.
    """
    by_first_words: dict[str, list[GrammarRule]] = {}
    for rule in rules:
        words = rule.text_before_fields.split(" ")
        has_fields = rule.text_before_fields != rule.text
        if has_fields and len(words) <= 2:
            words = words[:-1]  # a field begins within the last word
        by_first_words.setdefault(" ".join(words[:2]), []).append(rule)
    return by_first_words


class _Step(NamedTuple):
    """A step of a path in AVD's tree: to the value of a key, or into a list.

    There are three kinds: `ntp` leads to the mapping or value of a key, `servers[name=<server>]` to
    the entry of a list that has this name, and `commands[]` behind the end of a list.
    """

    key: str
    """The key of the mapping, list or value."""
    is_list: bool = False
    """Whether the key has a list."""
    names: tuple[tuple[str, str], ...] = ()
    """The keys that name the entry of a list, with the patterns of their values; () for a new
    entry."""

    @property
    def appends(self) -> bool:
        """Whether the step leads behind the end of a list."""
        return self.is_list and not self.names


@cache
def _steps(path: str) -> tuple[_Step, ...]:
    """The steps of a path such as `ntp/servers[name=<server>]`.

    >>> for step in _steps("ntp/servers[name=<server>]"):
    ...     print(step)
    _Step(key='ntp', is_list=False, names=())
    _Step(key='servers', is_list=True, names=(('name', '<server>'),))
    """
    steps = []
    for step in PATH_STEP.finditer(path):
        key, brackets = step.groups()
        if brackets is None:
            steps.append(_Step(key))
        else:
            pairs = (pair.partition("=") for pair in brackets.split(",") if pair)
            names = tuple((name, value) for name, _, value in pairs)
            steps.append(_Step(key, is_list=True, names=names))
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class _OpenStatement:
    """A statement below which the next lines may be, such as `interface Ethernet1`."""

    indent: int
    """The blanks before the statement."""
    rules: tuple[GrammarRule, ...]
    """The rules of the lines below it; () where the statement itself has no rule."""
    node: Tree
    """The mapping in AVD's tree to which the paths of these rules are relative."""


@dataclass(slots=True)
class _Translation:
    """The structured config of the lines of a configuration that were translated so far."""

    tree: Tree = field(default_factory=dict)
    """The structured config."""
    entries: dict[tuple[object, ...], Tree] = field(default_factory=dict)
    """The named entries of lists, by the `id` of the list and the values that name the entry.

    Searching a list for each of its entries would take long: a switch has thousands of routes.
    """
    without_rule: list[str] = field(default_factory=list)
    """The lines that the table does not have."""

    def translate(self, text: str) -> None:
        """Translate all lines of a configuration."""
        whole_file = _OpenStatement(-1, _rules(), self.tree)  # every line is below it
        open_statements = [whole_file]
        for line in exact_lines(text):
            statement = bare(line)
            if not statement or statement.startswith(COMMENT):
                continue
            indent = indentation(line)
            while open_statements[-1].indent >= indent:
                open_statements.pop()
            outer = open_statements[-1]
            match = _matching_rule(outer.rules, statement)
            if match is None:
                self.without_rule.append(line)
                open_statements.append(_OpenStatement(indent, (), outer.node))
                continue
            rule, fields = match
            nodes = [self._put(outer.node, verb, fields) for verb in rule.verbs]
            # The first path of a rule leads to the mapping of the lines below the statement.
            node = nodes[0] if nodes else outer.node
            open_statements.append(_OpenStatement(indent, rule.section_rules, node))

    def _put(self, node: Tree, verb: Verb, fields: Fields) -> Tree:
        """Put the value of a statement at its path below a node.

        Args:
            node: the mapping from which the path starts.
            verb: the path and, where the statement has one, the pattern of the value.
            fields: the fields of the statement.

        Returns:
            The mapping that now has the value, or to which a path without a value leads.
        """
        path, *patterns = verb
        steps = _steps(path)
        if not patterns:
            return self._mapping_behind(node, steps, fields)
        *steps_to_mapping, last_step = steps
        node = self._mapping_behind(node, steps_to_mapping, fields)
        key, value = _with_fields(last_step.key, fields), _value(patterns[0], fields)
        if last_step.appends:
            node.setdefault(key, []).append(value)
        else:
            node[key] = value
        return node

    def _mapping_behind(self, node: Tree, steps: Iterable[_Step], fields: Fields) -> Tree:
        """The mapping to which steps lead from a node."""
        for step in steps:
            node = self._mapping_at(node, step, fields)
        return node

    def _mapping_at(self, node: Tree, step: _Step, fields: Fields) -> Tree:
        """The mapping to which a step leads from a node; it is made if there is none."""
        key = _with_fields(step.key, fields)
        if not step.is_list:
            mapping: Tree = node.setdefault(key, {})
            return mapping
        entry = {name: _value(pattern, fields) for name, pattern in step.names}
        entries = node.setdefault(key, [])
        list_and_names = id(entries), *entry.values()
        if list_and_names not in self.entries:
            self.entries[list_and_names] = entry
            entries.append(entry)
        return self.entries[list_and_names]


def _matching_rule(
    rules: tuple[GrammarRule, ...], statement: str
) -> tuple[GrammarRule, Fields] | None:
    """The first rule that reads a statement, and its fields; None if there is none."""
    by_first_words = _by_first_words(rules)
    words = statement.split(" ", 2)
    for beginning in (" ".join(words[:2]), words[0], ""):
        for rule in by_first_words.get(beginning, ()):
            if (fields := rule.fields(statement)) is not None:
                return rule, fields
    return None


def _with_fields(text: str, fields: Fields) -> str:
    """A text in which fields such as `<server>` are replaced by their values."""
    return FIELD.sub(lambda match: fields[match[1]], text) if "<" in text else text


def _value(text: str, fields: Fields) -> str | int | bool:
    """A value of the tree from its pattern: `true`, `false`, a number after `#`, or a text."""
    if text in ("true", "false"):
        return text == "true"
    value = _with_fields(text.removeprefix("#"), fields)
    return exact_number(value) if text.startswith("#") else value


def structured_config(text: str) -> Tree:
    """The structured config of a switch (eos_cli_config_gen), from its configuration."""
    translation = _Translation()
    translation.translate(text)
    tree = translation.tree
    for key in ROUTE_LISTS:
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


class AvdDifference(NamedTuple):
    """A statement in which a structured config differs from that of a configuration."""

    line: int
    """The line in the JSON, or NO_LINE."""
    statement: str
    """The statement."""
    is_in_json: bool
    """Whether it is in the JSON only; else it is missing there."""


def differences(text: str, avd: str) -> Iterator[AvdDifference]:
    """The statements in which a structured config differs from that of a configuration.

    Args:
        text: the configuration.
        avd: the structured config, as JSON.

    Raises:
        JsonError: the structured config is no JSON.
        ValueError: (line, text) a key is twice in a mapping.
    """
    # As the template of avd.json prints it.
    expected = str(htmlsafe_json_dumps(structured_config(text), indent=2, sort_keys=True))
    if avd.rstrip("\n") == expected:
        return
    present_statements = list(_statements(tree_lines(avd, ROUTE_LISTS, KEYS)))
    expected_statements = _statements(tree_lines(expected, ROUTE_LISTS, KEYS))
    missing = Counter(statement for _, statement in expected_statements)
    for line, statement in present_statements:
        if missing[statement]:
            missing[statement] -= 1
        else:
            yield AvdDifference(line, statement, is_in_json=True)
    for statement in missing.elements():
        yield AvdDifference(NO_LINE, f"nothing of {statement}", is_in_json=False)


def _statements(lines: TextLines) -> Iterator[tuple[int, str]]:
    """The line and the text of each leaf of a tree: `ntp / servers / …`.

    Comments and empty lines among the commands of `eos_cli` are left out.
    """
    heads: list[tuple[int, str]] = []  # indentation and text, the outermost first
    for number, line in lines:
        indent, text = indentation(line), bare(line)
        while heads and heads[-1][0] >= indent:
            heads.pop()
        if text.startswith(f'{CLI} "'):
            commands = json.loads(text.removeprefix(f"{CLI} ")).split("\n")
            commands = [command for command in commands if bare(command) not in ("", COMMENT)]
            text = f"{CLI} {json.dumps(commands)}"
        yield number, " / ".join([*(head for _, head in heads), text])
        heads.append((indent, text))
