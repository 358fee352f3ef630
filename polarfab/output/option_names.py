"""Names of options in messages of library code, which knows parameters and no options.

The library writes `hosts_per_node` in backquotes. What a verb prints says --hosts-per-node instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import click

from inventory.problems import Problem

PARAMETER = re.compile(r"`([a-z_]+)((?: [^`]*)?)`")
"""A parameter in a text, and what follows it within the backquotes."""
KEY = re.compile(r"(?:^|(?<=, ))[a-z_]+(?: |(?=$|,))")
"""A parameter in a problem's key, a list with commas; with the blank before a NAME=VALUE."""
SHORT_OPTION = re.compile("-[a-z]")


def option_names(command: click.Command) -> dict[str, str]:
    """The options of a verb by the words that the library has for them.

    An option that takes NAME=VALUE has a second word, which ends in a blank: `set lmc` is --set
    lmc, while `target NAME` is a thing, and no option.
    """
    options = {}
    for parameter in command.params:
        if not isinstance(parameter, click.Option):
            continue
        for spelling in (parameter.name or "", *parameter.opts, *parameter.secondary_opts):
            if SHORT_OPTION.match(spelling):
                continue  # `q` is --q, the order, and not -q, --quiet
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
        word, rest = match.groups()
        return f"{options[word]}{rest}" if word in options else match[0]

    return PARAMETER.sub(named, text)


def named_problem(problem: Problem) -> Problem:
    """A problem of library code, its key and texts with the verb's options for parameters.

    The keys of YAML files are those of the file.
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
