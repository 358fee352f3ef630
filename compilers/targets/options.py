"""Options of a target: what `polarfab render --set NAME=VALUE` takes, and the messages about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from inventory.problems import InputError, Problem, did_you_mean, shown

SET = "set"
OFF = "off"


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a target; values are texts.

    what: what it is for, for people. default: its value where none is given. required: which
    values there are, in words. accepts: whether a text is one of them.
    """

    what: str
    default: str
    required: str
    accepts: Callable[[str], bool]

    @classmethod
    def choice(cls, what: str, *values: str) -> Option:
        """An option that is one of these words; the first is the default."""
        return cls(what, values[0], " or ".join(values), values.__contains__)


Options = Mapping[str, Option]
Chosen = Mapping[str, str]
NO_OPTIONS: Options = MappingProxyType({})
"""Of targets without options."""


def read(words: Iterable[str], key: str = SET) -> Chosen:
    """{name: value} of words NAME=VALUE, the values of the option `key` of the command line.

    Raises:
        InputError: a word is none, or a name comes twice.
    """
    chosen: dict[str, str] = {}
    problems = []
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            problems.append(Problem(key=key, required="NAME=VALUE", given=shown(word)))
        elif name in chosen:
            problems.append(Problem(key=f"{key} {name}", required="one value", given="two or more"))
        chosen[name] = value
    if problems:
        raise InputError(problems)
    return chosen


def choose(target: str, options: Options, given: Chosen | None) -> Chosen:
    """The value of every option of a target: the given one, or the default.

    Raises:
        InputError: a name that the target has not, or a value that the option does not take; all
            of them at once.
    """
    given = given or {}
    if problems := list(_problems(target, options, given)):
        raise InputError(problems)
    return {name: given.get(name, option.default) for name, option in options.items()}


def _problems(target: str, options: Options, given: Chosen) -> Iterator[Problem]:
    for name, value in given.items():
        if name not in options:
            yield Problem(
                key=SET,
                required=f"an option of target {target}: {', '.join(options) or 'it has none'}",
                given=shown(name),
                todo=did_you_mean(name, options),
            )
        elif not options[name].accepts(value):
            yield Problem(key=f"{SET} {name}", required=options[name].required, given=shown(value))
