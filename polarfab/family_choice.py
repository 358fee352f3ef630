"""A topology on the command line: a family, and its parameters as options or as words."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import click

Verb = Callable[..., Any]

PARAMETERS: dict[str, dict[str, Any]] = {
    "q": {"type": int, "help": "Order of the field, a prime power."},
    "supernode": {"help": "PolarStar: inductive-quad, paley or complete."},
    "degree": {"type": int, "help": "PolarStar: degree of the supernode."},
}


def parameter_options(verb: Verb) -> Verb:
    """The options --q, --supernode and --degree."""
    options = (click.option(f"--{name}", **facts) for name, facts in PARAMETERS.items())
    return reduce(lambda made, option: option(made), reversed([*options]), verb)


def family_options(verb: Verb) -> Verb:
    """FAMILY, then NAME=VALUE words, and the options of its parameters."""
    words = click.argument("parameters", nargs=-1, metavar="[NAME=VALUE]...")
    return click.argument("family")(words(parameter_options(verb)))


def given_parameters(words: tuple[str, ...], **options: int | str | None) -> dict[str, Any]:
    """The parameters in words such as `h=6`, and in options; what is not given is None.

    Raises:
        UsageError: a word is no NAME=VALUE.
    """
    given: dict[str, Any] = {**options}
    for word in words:
        name, sign, value = word.partition("=")
        if not (name and sign and value):
            raise click.UsageError(f"required NAME=VALUE, as in h=6, given {word}")
        given[name] = int(value) if value.isascii() and value.isdigit() else value
    return given
