"""Grammars as data: the statements that a system understands, and what each of them means.

A grammar is a text next to the templates of its target, `templates/TARGET/FILE.grammar`. A line is
a rule: the pattern of a statement, and behind `=>` what it does, verbs with `;` between them. Rules
that are below another, further to the right, are those of its section. `#` begins a comment.

Patterns have fields: `<a>` is a word, `<a#>` a number of at most ten digits (without zeros before
it, which `ip` takes for octal), `<a.>` an IPv4, `<a:>` an IPv6 and `<a@>` a MAC address, `<a...>`
the rest of the line, `<a=REGEX>` what a regular expression fits; parts in `[ ]` may be left out. A
field `<prefix>`, `<prefix4>` or `<prefix6>` makes a rule one of routes, which are read by numpy:
before it are no other fields. A rule that ends in `**` takes all lines of its section as
statements.

Verbs of the engine, about order:

    define D            D holds from here on; D has fields, as the arguments of all verbs have
    needs D             a difference unless D was defined above
    wants D             a difference unless D is defined anywhere
    absent D            a difference if it was defined above
    range A B N         a difference unless the number N, if it is there, is from A to B
    must [if|unless D]  a difference if the section has no such statement, by all of the file
    only if|unless D    a difference if it has, likewise
    iff D               must if D, only if D; D may be several, with & between them
    last                nothing may follow
    say                 it is a statement for others to find

All others are methods of the actor (`engine.GrammarActor`), with a place and the arguments: words,
`#<a>` a number, `@<a>` a port.

Directives: `%comment CHARS` say nothing at the beginning of a line; `%close WORD [SECTION]` ends a
section, and with it every section has to be ended so. `%facts [if D] KIND…` are the facts that the
file has to state in full. `%tree json|yaml`: the lines are those of a tree (`trees`), and a line is
part of what it is further right than; `%whole KEY…`: keys whose entries are one line each; `%keys
LIST=KEY…`: what names the entries of a list, where it is not `name`.
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
TOKEN = re.compile(r"<[a-z]+\d?(?:#|@|\.\.\.|\.|:|=[^>]+)?>|\[|\]")
PREFIX = re.compile(r"<prefix([46]?)>")
KINDS = {
    "": r"\S+",
    "#": r"0|[1-9][0-9]{0,9}",
    "@": r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}",
    "...": r".+",
    ".": r"[0-9.]+",
    ":": r"[0-9a-f.]*:[0-9a-f:.]*",
}
"""What fields fit, by what follows their names."""
DEEP = " **"
ENGINE_VERBS = {
    *("say", "define", "needs", "wants", "absent", "range"),
    *("must", "only", "iff", "last"),
}
Verb = tuple[str, ...]
Fields = dict[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class GrammarRule:
    """A statement that is understood.

    text: its pattern as it is written. checks, verbs: what it does: those of the engine, and those
    of the actor. inside: the rules of its section. six: of a rule of routes, whether its prefixes
    are IPv6 ones, None: either. deep: its section is taken whole. indent: where it begins.
    """

    text: str
    pattern: re.Pattern[str]
    checks: tuple[Verb, ...]
    verbs: tuple[Verb, ...]
    inside: tuple[GrammarRule, ...]
    indent: int
    six: bool | None = None
    routes: bool = False
    deep: bool = False

    @property
    def head(self) -> str:
        """The text before the first field."""
        return TOKEN.split(self.text, maxsplit=1)[0]

    @property
    def section(self) -> bool:
        """Whether other statements may follow below."""
        return bool(self.inside) or self.deep

    def fields(self, statement: str) -> Fields | None:
        """The texts of the fields of a statement; None: it is another one."""
        found = self.pattern.fullmatch(statement)
        return {k: v for k, v in found.groupdict().items() if v is not None} if found else None


@dataclass(frozen=True, slots=True, eq=False)
class RouteHead:
    """How lines of routes begin, the rules that read what is behind their prefix, and where.

    section: the rule whose section they are in; None: none.
    """

    text: str
    section: GrammarRule | None
    rules: tuple[GrammarRule, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """The statements of a file.

    comment: characters that begin lines that say nothing. closes: the section that a word ends, ""
    any; where there is such a word every section ends so. rules: of statements in no section.
    heads: those of routes. plain: how other statements begin that begin as routes do. facts: kinds
    of facts that are stated in full, and what has to hold for that. tree: json, yaml, or "" for a
    text of lines; whole, keys: of `tree_lines`.
    """

    comment: str
    closes: dict[str, str]
    rules: tuple[GrammarRule, ...]
    heads: tuple[RouteHead, ...]
    plain: tuple[str, ...]
    facts: tuple[tuple[str, str], ...] = ()
    tree: str = ""
    whole: tuple[str, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)

    def lines(self, text: str) -> TextLines:
        """The lines of a file.

        Raises:
            ValueError: (line, text) it is no such tree.
        """
        if self.tree:
            return tree_lines(text, self.whole, self.keys, in_yaml=self.tree == "yaml")
        return TextLines.of(text.encode("utf-8", "replace"))

    @classmethod
    def of(cls, text: str) -> Grammar:
        """Read a grammar.

        Raises:
            ValueError: a line is no rule.
        """
        comment, tree, whole = "#", "", tuple[str, ...]()
        closes, keys, facts = dict[str, str](), dict[str, str](), list[tuple[str, str]]()
        rows: list[tuple[int, str]] = []
        for line in exact_lines(text):
            match shlex.split(line) if line.startswith("%") else exact_words(line):
                case ["%comment", comment]:
                    pass
                case ["%close", word, *section]:
                    closes[word] = " ".join(section)
                case ["%tree", tree]:
                    comment = ""
                case ["%whole", *below]:
                    whole = tuple(below)
                case ["%keys", *named]:
                    keys |= dict(each.split("=") for each in named)
                case ["%facts", "if", condition, *kinds]:
                    facts += [(kind, condition) for kind in kinds]
                case ["%facts", *kinds]:
                    facts += [(kind, "") for kind in kinds]
                case [first, *_] if first[0] != "#":
                    rows.append((indentation(line), bare(line)))
        rules = tuple(_rules(rows))
        heads = tuple(_heads(rules, None))
        starts = tuple(head.text for head in heads)
        others = (" " * r.indent + r.head for r in _all(rules) if not r.routes)
        plain = tuple(p for p in others if p.startswith(starts))
        return cls(comment, closes, rules, heads, plain, tuple(facts), tree, whole, keys)


@lru_cache
def grammar(target: str, file: str) -> Grammar:
    """That of a file of a target."""
    return Grammar.of(read_exact(TEMPLATES / target / f"{file}.grammar"))


def _all(rules: tuple[GrammarRule, ...]) -> list[GrammarRule]:
    return [each for rule in rules for each in (rule, *_all(rule.inside))]


def _rules(lines: list[tuple[int, str]]) -> list[GrammarRule]:
    """The rules of lines with their indentation; those further right than the first are inside."""
    found: list[GrammarRule] = []
    while lines:
        indent, line = lines[0]
        end = next((n for n, (far, _) in enumerate(lines[1:], 1) if far <= indent), len(lines))
        found.append(_rule(indent, line, tuple(_rules(lines[1:end]))))
        lines = lines[end:]
    return found


def _rule(indent: int, line: str, inside: tuple[GrammarRule, ...]) -> GrammarRule:
    text, _, does = line.partition("=>")
    text = bare(text)
    deep = text.endswith(DEEP)
    text = text.removesuffix(DEEP)
    verbs = [tuple(shlex.split(verb)) for verb in does.split(";") if bare(verb)]
    prefix = PREFIX.search(text)
    return GrammarRule(
        text=text,
        pattern=re.compile(_regex(text) + (r"(?: .*)?" if deep else ""), re.ASCII),
        checks=tuple(verb for verb in verbs if verb[0] in ENGINE_VERBS),
        verbs=tuple(verb for verb in verbs if verb[0] not in ENGINE_VERBS),
        inside=inside,
        indent=indent,
        six={"4": False, "6": True}.get(prefix[1]) if prefix else None,
        routes=prefix is not None,
        deep=deep,
    )


def _regex(text: str) -> str:
    """The regular expression of a pattern."""
    parts, last, seen = [], 0, set[str]()
    for token in TOKEN.finditer(text):
        parts.append(re.escape(text[last : token.start()]))
        last = token.end()
        if found := FIELD.fullmatch(token[0]):
            name, kind = found.groups()
            inner = KINDS.get(kind or "", (kind or "")[1:])
            parts.append(f"(?P={name})" if name in seen else f"(?P<{name}>{inner})")
            seen.add(name)
        else:
            parts.append("(?:" if token[0] == "[" else ")?")
    return "".join([*parts, re.escape(text[last:])])


def _heads(rules: tuple[GrammarRule, ...], section: GrammarRule | None) -> list[RouteHead]:
    """The heads of routes among rules, the longest first."""
    by_head: dict[str, list[GrammarRule]] = {}
    found: list[RouteHead] = []
    for rule in rules:
        if rule.routes:
            by_head.setdefault(" " * rule.indent + rule.head, []).append(rule)
        found += _heads(rule.inside, rule)
    found += [RouteHead(head, section, tuple(some)) for head, some in by_head.items()]
    return sorted(found, key=lambda head: -len(head.text))
