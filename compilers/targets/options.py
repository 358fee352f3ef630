"""Options of targets, `polarfab render --set NAME=VALUE`: possible values, defaults and errors.

The class of a target declares its options. `Target.chosen` has `choose` give each option a value,
before the target is rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from compilers.spec.node_systems import CONTROL_KEYS
from inventory.problems import InputError, Problem, did_you_mean, shown

SET = "set"
"""The option of the command line that takes values of options of targets."""
OFF = "off"
"""The value of an option for a feature that is not wanted."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a target; values are texts."""

    description: str
    """What it is for, as the manual prints it."""
    default: str
    """Its value where the user gives none."""
    possible: str
    """Its possible values in words."""
    is_possible: Callable[[str], bool]
    """Whether a text is a possible value."""

    @classmethod
    def choice(cls, description: str, *values: str) -> Option:
        """An option with a few possible words, the first of which is the default."""
        return cls(description, values[0], " or ".join(values), values.__contains__)


Options = Mapping[str, Option]
"""Options by name."""
Chosen = Mapping[str, str]
"""The values of options by name."""
NO_OPTIONS: Options = MappingProxyType({})
"""The options of a target that has none."""


def read(assignments: Iterable[str], key: str = SET) -> Chosen:
    """The values of options from assignments NAME=VALUE.

    Args:
        assignments: from the command line.
        key: the option of the command line that takes them, for messages.

    Raises:
        InputError: an assignment is not NAME=VALUE, or a name comes twice.

    >>> read(["version=10.7", "host=h0"])
    {'version': '10.7', 'host': 'h0'}
    """
    chosen: dict[str, str] = {}
    problems = []
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign or not name:
            problems.append(Problem(key=key, required="NAME=VALUE", given=shown(assignment)))
        elif name in chosen:
            problems.append(Problem(key=f"{key} {name}", required="one value", given="two or more"))
        chosen[name] = value
    if problems:
        raise InputError(problems)
    return chosen


def choose(target: str, options: Options, user_values: Chosen | None) -> Chosen:
    """The value of every option of a target: the user's, or the default.

    Args:
        target: the name of the target, for messages.
        options: the options of the target.
        user_values: the values that the user gives.

    Raises:
        InputError: the target has no such option, or the option does not take the value; all
            problems at once.
    """
    user_values = user_values or {}
    if problems := list(_value_problems(target, options, user_values)):
        raise InputError(problems)
    return {name: user_values.get(name, option.default) for name, option in options.items()}


def _value_problems(target: str, options: Options, user_values: Chosen) -> Iterator[Problem]:
    """The problems of values of the user that a target does not take."""
    for name, value in user_values.items():
        if name not in options:
            if name in CONTROL_KEYS:
                todo = f"write it in fabric.yaml: {CONTROL_KEYS[name]}"
            else:
                todo = did_you_mean(name, options)
            yield Problem(
                key=SET,
                required=f"an option of target {target}: {', '.join(options) or 'it has none'}",
                given=shown(name),
                todo=todo,
            )
        elif not options[name].is_possible(value):
            yield Problem(key=f"{SET} {name}", required=options[name].possible, given=shown(value))
