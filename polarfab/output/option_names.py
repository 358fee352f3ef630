"""Replaces parameters by options in messages, because the library knows no options.

The library writes `hosts_per_node` in backquotes. A verb prints --hosts-per-node instead. When a
verb begins, `verb_output` puts its `option_names` into the context of click, for all messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import click

from inventory.problems import Problem

PARAMETER = re.compile(r"`([a-z_]+)((?: [^`]*)?)`")
"""A parameter in a text, and its value within the backquotes: `set decap=switch`."""
KEY = re.compile(r"(?:^|(?<=, ))([a-z_]+)( |(?=$|,))")
"""A parameter in a problem's key, which is a list with commas: `q, degree`. A parameter with a
value behind it is matched with the blank between them: `set ` of `set lmc`."""
SHORT_OPTION = re.compile("-[a-z]")
"""An option of one letter, such as `-q`."""


@dataclass(frozen=True, slots=True)
class OptionNames:
    """The options of a verb, by the library's words for them."""

    by_word: Mapping[str, str] = field(default_factory=dict)
    """All options: `--hosts-per-node` for `hosts_per_node`."""
    before_values: Mapping[str, str] = field(default_factory=dict)
    """The options that take NAME=VALUE: `--set` for `set`. Only these replace a word of a problem's
    key that a value follows. So the key `set lmc` becomes --set lmc, while the key `target frr`
    stays as it is."""


def option_names(command: click.Command) -> OptionNames:
    """The options of a verb, by the library's words for them."""
    by_word, before_values = dict[str, str](), dict[str, str]()
    for parameter in command.params:
        if not isinstance(parameter, click.Option):
            continue
        for spelling in (parameter.name or "", *parameter.opts, *parameter.secondary_opts):
            if SHORT_OPTION.match(spelling):
                continue  # `q` is the parameter --q, not -q, which is --quiet
            option = parameter.opts[0] if spelling == parameter.name else spelling
            word = spelling.lstrip("-").replace("-", "_")
            by_word[word] = option
            if parameter.metavar == "NAME=VALUE":
                before_values[word] = option
    return OptionNames(by_word, before_values)


def named_options(text: str) -> str:
    """A text of library code, with the verb's options for the parameters in its backquotes.

    `hosts_per_node` becomes --hosts-per-node, and `set decap=switch` --set decap=switch.
    """
    options = _options().by_word

    def named(match: re.Match[str]) -> str:
        """The option in the place of a parameter, if the verb has such an option."""
        word, value = match.groups()
        return f"{options[word]}{value}" if word in options else match[0]

    return PARAMETER.sub(named, text)


def named_problem(problem: Problem) -> Problem:
    """A problem of library code, with the verb's options for parameters in its key and texts.

    The key of a problem in a YAML file is a key of the file, and stays as it is.
    """
    is_key_of_file = problem.file.endswith((".yaml", ".yml"))
    return replace(
        problem,
        key=problem.key if is_key_of_file else _named_key(problem.key, _options()),
        required=named_options(problem.required),
        given=named_options(problem.given),
        todo=named_options(problem.todo),
    )


def _named_key(key: str, options: OptionNames) -> str:
    """The key of a problem with options for parameters."""

    def named(match: re.Match[str]) -> str:
        """The option in the place of a parameter, if the verb has such an option."""
        word, blank = match.groups()
        names = options.before_values if blank else options.by_word
        return names.get(word, word) + blank

    return KEY.sub(named, key)


def _options() -> OptionNames:
    """`option_names` of the verb that runs; no options outside a verb."""
    context = click.get_current_context(silent=True)
    options: OptionNames | None = context.meta.get("options") if context else None
    return options or OptionNames()
