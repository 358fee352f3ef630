"""Every option of every verb: the same name is the same thing, described in the same words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click

from polarfab.cli import cli
from polarfab.verb_list import verb_names

SHORT = {"--output": ["-o"], "--quiet": ["-q"], "--verbose": ["-v"]}


def _commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli)
    for name in verb_names():
        command = cli.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {word}", each) for word, each in command.commands.items())
        else:
            yield name, command


def _values(option: click.Option) -> tuple[object, ...]:
    kind = option.type
    places = [getattr(kind, word, None) for word in ("exists", "file_okay", "dir_okay")]
    usual = option.default if isinstance(option.default, int | float | str | Path) else None
    text = "Path" if isinstance(kind, click.Path) else repr(kind)
    return text, *places, option.multiple, option.is_flag, option.metavar, usual


def _options() -> dict[str, dict[str, click.Option]]:
    found: dict[str, dict[str, click.Option]] = defaultdict(dict)
    for verb, command in _commands():
        for option in command.params:
            if isinstance(option, click.Option):
                found[max(option.opts, key=len)][verb] = option
    return found


def test_an_option_of_several_verbs_is_the_same_in_all() -> None:
    helps, values = {}, {}
    for name, verbs in _options().items():
        said = {re.split(r"[.;:,]| \[", option.help or "")[0] for option in verbs.values()}
        kinds = {_values(option) for option in verbs.values()}
        if len(said) > 1:
            helps[name] = said
        if len(kinds) > 1:
            values[name] = kinds
    assert helps == {}
    assert values == {}


def test_every_option_has_help_and_one_short_name() -> None:
    for name, verbs in _options().items():
        for verb, option in verbs.items():
            assert option.help, f"{verb} {name}"
            short = [word for word in option.opts if not word.startswith("--")]
            assert short == SHORT.get(name, []), f"{verb} {name}"


def test_every_verb_takes_json_quiet_and_verbose() -> None:
    found = _options()
    for verb, _ in _commands():
        for name in ("--quiet", "--verbose", "--json"):
            assert verb in found[name], (verb, name)
