"""Replaces parameters by options in messages, because the library knows no options.

The library writes `hosts_per_node` in backquotes. A verb prints --hosts-per-node instead. When a
verb begins, `verb_output` puts its `option_names` into the context of click, for all messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import click

from inventory.problems import Problem

PARAMETER = re.compile(r"`([a-z_]+)((?: [^`]*)?)`")
"""A parameter in a text, and its value within the backquotes: `set decap=switch`."""
KEY = re.compile(r"(?:^|(?<=, ))[a-z_]+(?: |(?=$|,))")
"""A parameter in a problem's key, which is a list with commas: `q, degree`. A parameter with a
value behind it is matched with the blank between them, `set ` of `set lmc`, as `option_names` has
it."""
SHORT_OPTION = re.compile("-[a-z]")
"""An option of one letter, such as `-q`."""


def option_names(command: click.Command) -> dict[str, str]:
    """The options of a verb, by the library's words for them.

    Words of problems' keys that a value follows end in a blank here, as in `KEY`. Only options that
    take NAME=VALUE have such a word, `set ` for `--set `. So the key `set lmc` becomes --set lmc,
    while the key `target frr` stays as it is.
    """
    options = {}
    for parameter in command.params:
        if not isinstance(parameter, click.Option):
            continue
        for spelling in (parameter.name or "", *parameter.opts, *parameter.secondary_opts):
            if SHORT_OPTION.match(spelling):
                continue  # `q` is the parameter --q, not -q, which is --quiet
            option = parameter.opts[0] if spelling == parameter.name else spelling
            word = spelling.lstrip("-").replace("-", "_")
            options[word] = option
            if parameter.metavar == "NAME=VALUE":
                options[f"{word} "] = f"{option} "
    return options


def named_options(text: str) -> str:
    """A text of library code, with the verb's options for the parameters in its backquotes.

    `hosts_per_node` becomes --hosts-per-node, and `set decap=switch` --set decap=switch.
    """
    options = _options()

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


def _named_key(key: str, options: Mapping[str, str]) -> str:
    """The key of a problem with options for parameters."""
    return KEY.sub(lambda match: options.get(match[0], match[0]), key)


def _options() -> dict[str, str]:
    """`option_names` of the verb that runs; {} outside a verb."""
    context = click.get_current_context(silent=True)
    options: dict[str, str] = context.meta.get("options", {}) if context else {}
    return options
