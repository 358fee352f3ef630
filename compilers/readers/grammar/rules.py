"""Grammars of configuration files, as data: which statements there are, and what each means.

The grammar of a file is a text next to its template, `templates/TARGET/FILE.grammar`. What comes in
is such a text, and what goes out is a `Grammar`. `text_engine` reads configurations by the grammar.

A line is a rule: the pattern of a statement, and behind `=>` its meaning, verbs with `;` between
them. Rules that are indented below another are those of its section. `#` begins a comment. An
example:

    vrf instance <vrf>              => define vrf <vrf>
    interface <port>                => note <port>
      no switchport                 => must
      vrf <vrf>                     => needs vrf <vrf>
    ip route <prefix> <gateway.>    => route <gateway>

A *difference* is a fault to be reported: here an interface whose section lacks `no switchport`, or
has `vrf red` without `vrf instance red` above. The engine carries out the verbs `define`, `must`
and `needs` itself. Other verbs are left to the *actor*, here an object with a method `note`, which
does with the port what this file needs. Lines of routes are read many at once. Their beginning
`ip route ` is their *head*. By `ip route 10.0.0.0/24 10.9.0.1` the prefix goes to 10.9.0.1.

Patterns have fields:

    <a>         a word
    <a#>        a number of at most ten digits, without leading zeros (`ip` takes them for octal)
    <a.>        an IPv4 address
    <a:>        an IPv6 address
    <a@>        a MAC address
    <a...>      the rest of the line
    <a=REGEX>   a text that a regular expression fits
    [ ]         these parts may be left out

A field `<prefix>`, `<prefix4>` or `<prefix6>` makes a rule one of routes, which numpy reads. No
other field may be before it. A rule that ends in `**` takes all lines of its section as statements.

The verbs of the engine are about which statements there are, and in which order. D is a
definition, which is words with fields, such as `vrf <vrf>`. Conditions look at the whole file:
`if D` holds if D is defined anywhere, `unless D` if it is not. D may be several definitions with &
between them. Then `if` holds if all are defined, and `unless` if one of them is missing.

    define D            from here on, D is defined
    needs D             a difference unless D was defined above: the device wants it first
    wants D             a difference unless D is defined anywhere: it may also be below
    absent D            a difference if D was defined above: this would undo or repeat it
    range A B N         a difference unless the number N, if it is there, is from A to B
    must                a difference if the section has no such statement
    must if|unless D    the same, where the condition holds
    only if|unless D    a difference if the section has such a statement and the condition fails
    iff D               `must if D` and `only if D`
    last                nothing may follow
    say                 keeps the statement in `TextEngine.statement_lines` for another reader, as
                        the reader of BGP

The methods of the actor (`text_engine.GrammarActor`) take the statement and the arguments of the
verb: words, `#<a>` a number, `@<a>` a port. Many have the verb `fact`: by `fact hostname <name>`
the file states a *fact* of the kind `hostname`, which is compared with the build.

Directives are lines that begin with `%`:

    %comment CHARS              a line that begins with one of these is a comment
    %close WORD [SECTION]       WORD ends a section; then every section has to be ended by a word
    %facts [if D] KIND…         the kinds of facts that the file has to state in full
    %tree json|yaml             the file is a tree, read as lines (`trees.tree_lines`)
    %whole KEY…                 keys of a tree whose entries are one line each
    %keys LIST=KEY…             the key that names the entries of a list, where it is not `name`
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from compilers.readers.exact_text import (
    bare,
    exact_lines,
    exact_words,
    indentation,
    read_exact,
)
from compilers.readers.grammar.trees import tree_lines
from compilers.readers.text_lines import TextLines
from templates import TEMPLATES

FIELD = re.compile(r"<([a-z]+\d?)(#|@|\.\.\.|\.|:|=[^>]+)?>")
"""A field of a pattern: its name, and the characters behind the name."""
TOKEN = re.compile(r"<[a-z]+\d?(?:#|@|\.\.\.|\.|:|=[^>]+)?>|\[|\]")
"""A field of a pattern, or a bracket."""
PREFIX = re.compile(r"<prefix([46]?)>")
"""The field that makes a rule one of routes."""
FIELD_PATTERNS = {
    "": r"\S+",
    "#": r"0|[1-9][0-9]{0,9}",
    "@": r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}",
    "...": r".+",
    ".": r"[0-9.]+",
    ":": r"[0-9a-f.]*:[0-9a-f:.]*",
}
"""The regular expressions of fields, by the characters behind their names."""
WHOLE_SECTION = " **"
"""The end of a rule that takes all lines of its section as statements."""
ENGINE_VERBS = {
    *("say", "define", "needs", "wants", "absent", "range"),
    *("must", "only", "iff", "last"),
}
"""The verbs that the engine carries out itself."""
Verb = tuple[str, ...]
"""A verb and its arguments."""
Fields = dict[str, str]
"""The texts of fields, by their names."""


@dataclass(frozen=True, slots=True)
class RuleLine:
    """A line of a grammar that is a rule."""

    indent: int
    """The blanks before it."""
    text: str
    """The line without these blanks."""


@dataclass(frozen=True, slots=True, eq=False)
class GrammarRule:
    """The rule for one kind of statement."""

    text: str
    """The pattern as it is written."""
    pattern: re.Pattern[str]
    """The regular expression that statements of this kind fit."""
    checks: tuple[Verb, ...]
    """The verbs of the engine."""
    verbs: tuple[Verb, ...]
    """The verbs of the actor."""
    section_rules: tuple[GrammarRule, ...]
    """The rules of its section."""
    indent: int
    """The blanks before the rule, and before its statements."""
    is_ipv6: bool | None = None
    """For routes: whether their prefixes are IPv6 ones; None: either."""
    is_of_routes: bool = False
    """Whether it is a rule for routes, with a field `prefix`."""
    takes_section: bool = False
    """Whether all lines of its section are taken as statements for other readers."""

    @property
    def text_before_fields(self) -> str:
        """The text before the first field."""
        return TOKEN.split(self.text, maxsplit=1)[0]

    @property
    def opens_section(self) -> bool:
        """Whether other statements may follow below."""
        return bool(self.section_rules) or self.takes_section

    def fields(self, statement: str) -> Fields | None:
        """The texts of a statement's fields; None where the pattern does not fit it."""
        match = self.pattern.fullmatch(statement)
        if match is None:
            return None
        return {name: text for name, text in match.groupdict().items() if text is not None}


@dataclass(frozen=True, slots=True, eq=False)
class RouteHead:
    """The beginning that lines of routes share, up to their prefix."""

    text: str
    """The beginning, with the blanks before it."""
    section: GrammarRule | None
    """The rule in whose section they are; None: in no section."""
    rules: tuple[GrammarRule, ...]
    """The rules that read what is behind the prefix."""


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """The grammar of a file."""

    comment: str
    """Characters that begin comments."""
    section_ends: dict[str, str]
    """The words that end sections, each with the section that it ends, "" for any. Where there are
    such words, every section has to be ended by one."""
    rules: tuple[GrammarRule, ...]
    """The rules of statements in no section."""
    route_heads: tuple[RouteHead, ...]
    """The beginnings of lines of routes, the longest first."""
    statement_heads: tuple[str, ...]
    """The beginnings of statements that begin as routes do, and are none. The engine does not read
    their lines as routes. If `ip route ` is a head, `ip route vrf ` begins a route in a VRF, which
    has no prefix in this place."""
    complete_facts: tuple[tuple[str, str], ...] = ()
    """The kinds of facts that the file has to state in full, each with its condition: a definition
    that the file has; "" for none."""
    tree_format: str = ""
    """`json`, `yaml`, or "" for a text of lines."""
    one_line_keys: tuple[str, ...] = ()
    """The keys of a tree whose entries are one line each (see `tree_lines`)."""
    name_keys: Mapping[str, str] = field(default_factory=dict)
    """By list of a tree, the key that names its entries (see `tree_lines`)."""

    def all_rules(self) -> list[GrammarRule]:
        """The rules, and those of their sections."""
        return _with_sections(self.rules)

    def lines(self, text: str) -> TextLines:
        """The lines of a file; of a tree, those of `tree_lines`.

        Raises:
            ValueError: (line, text) it is no JSON or YAML.
        """
        if self.tree_format:
            return tree_lines(
                text, self.one_line_keys, self.name_keys, in_yaml=self.tree_format == "yaml"
            )
        return TextLines.of(text.encode("utf-8", "replace"))

    @classmethod
    def of(cls, text: str) -> Grammar:
        """Parse a grammar.

        Raises:
            ValueError: a line is no rule.

        >>> hostname, = Grammar.of("hostname <name> => fact hostname <name>").rules
        >>> hostname.fields("hostname leaf-1"), hostname.verbs
        ({'name': 'leaf-1'}, (('fact', 'hostname', '<name>'),))
        """
        comment, tree = "#", ""
        whole: tuple[str, ...] = ()
        closes: dict[str, str] = {}
        keys: dict[str, str] = {}
        facts: list[tuple[str, str]] = []
        rule_lines: list[RuleLine] = []
        for line in exact_lines(text):
            match shlex.split(line) if line.startswith("%") else exact_words(line):
                case ["%comment", comment]:
                    pass  # the pattern has assigned it
                case ["%close", word, *section]:
                    closes[word] = " ".join(section)
                case ["%tree", tree]:
                    comment = ""
                case ["%whole", *below]:
                    whole = tuple(below)
                case ["%keys", *assignments]:
                    keys |= dict(assignment.split("=") for assignment in assignments)
                case ["%facts", "if", condition, *kinds]:
                    facts += [(kind, condition) for kind in kinds]
                case ["%facts", *kinds]:
                    facts += [(kind, "") for kind in kinds]
                case [first, *_] if first[0] != "#":
                    rule_lines.append(RuleLine(indentation(line), bare(line)))
        rules = tuple(_rules(rule_lines))
        heads = tuple(_heads(rules, None))
        return cls(
            comment=comment,
            section_ends=closes,
            rules=rules,
            route_heads=heads,
            statement_heads=_statement_heads(rules, heads),
            complete_facts=tuple(facts),
            tree_format=tree,
            one_line_keys=whole,
            name_keys=keys,
        )


@lru_cache
def grammar(target: str, file: str) -> Grammar:
    """The grammar of a file of a target."""
    return Grammar.of(read_exact(TEMPLATES / target / f"{file}.grammar"))


def _with_sections(rules: tuple[GrammarRule, ...]) -> list[GrammarRule]:
    """The rules, and those of their sections."""
    flat: list[GrammarRule] = []
    for rule in rules:
        flat += [rule, *_with_sections(rule.section_rules)]
    return flat


def _rules(lines: list[RuleLine]) -> list[GrammarRule]:
    """The rules of lines; a line that is indented more than another is in its section."""
    rules: list[GrammarRule] = []
    first = 0
    while first < len(lines):
        end = first + 1
        while end < len(lines) and lines[end].indent > lines[first].indent:
            end += 1
        section = _rules(lines[first + 1 : end])
        rules.append(_rule(lines[first], tuple(section)))
        first = end
    return rules


def _rule(line: RuleLine, section_rules: tuple[GrammarRule, ...]) -> GrammarRule:
    """The rule of a line.

    Args:
        line: the line.
        section_rules: the rules of its section.
    """
    text, _, meaning = line.text.partition("=>")
    text = bare(text)
    takes_all = text.endswith(WHOLE_SECTION)
    text = text.removesuffix(WHOLE_SECTION)
    verbs = [tuple(shlex.split(verb)) for verb in meaning.split(";") if bare(verb)]
    prefix = PREFIX.search(text)
    return GrammarRule(
        text=text,
        pattern=re.compile(_regex(text) + (r"(?: .*)?" if takes_all else ""), re.ASCII),
        checks=tuple(verb for verb in verbs if verb[0] in ENGINE_VERBS),
        verbs=tuple(verb for verb in verbs if verb[0] not in ENGINE_VERBS),
        section_rules=section_rules,
        indent=line.indent,
        is_ipv6={"4": False, "6": True}.get(prefix[1]) if prefix else None,
        is_of_routes=prefix is not None,
        takes_section=takes_all,
    )


def _regex(text: str) -> str:
    """The regular expression of a pattern; a field that is there twice has the same text twice."""
    regex, end = "", 0
    captured: set[str] = set()
    for token in TOKEN.finditer(text):
        regex += re.escape(text[end : token.start()])
        end = token.end()
        if token[0] == "[":
            regex += "(?:"
        elif token[0] == "]":
            regex += ")?"
        elif field_match := FIELD.fullmatch(token[0]):
            name, suffix = field_match[1], field_match[2] or ""
            if name in captured:
                regex += f"(?P={name})"
            else:
                is_regex = suffix.startswith("=")
                field_regex = suffix.removeprefix("=") if is_regex else FIELD_PATTERNS[suffix]
                regex += f"(?P<{name}>{field_regex})"
                captured.add(name)
    return regex + re.escape(text[end:])


def _heads(rules: tuple[GrammarRule, ...], section: GrammarRule | None) -> list[RouteHead]:
    """The heads of routes among rules, the longest first."""
    by_text: dict[str, list[GrammarRule]] = {}
    heads: list[RouteHead] = []
    for rule in rules:
        if rule.is_of_routes:
            by_text.setdefault(" " * rule.indent + rule.text_before_fields, []).append(rule)
        heads += _heads(rule.section_rules, rule)
    heads += [RouteHead(text, section, tuple(of_text)) for text, of_text in by_text.items()]
    return sorted(heads, key=lambda head: -len(head.text))


def _statement_heads(
    rules: tuple[GrammarRule, ...], heads: tuple[RouteHead, ...]
) -> tuple[str, ...]:
    """The beginnings of statements that are no routes, and begin as routes do."""
    beginnings = tuple(head.text for head in heads)
    others = [
        " " * rule.indent + rule.text_before_fields
        for rule in _with_sections(rules)
        if not rule.is_of_routes
    ]
    return tuple(text for text in others if text.startswith(beginnings))
