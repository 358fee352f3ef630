"""The value of `--target`: the name of a target that is installed.

Which packages register targets is read only where a name is none of polarfab's.
"""

from __future__ import annotations

import click

from compilers.spec.target_names import BUILT_IN, meant_target, target_names


def known_target(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """The name, if it is that of a target, or none was given."""
    if value is None or value in BUILT_IN or value in (names := target_names()):
        return value
    near = meant_target(value, names)
    todo = f"did you mean {near}?" if near else "polarfab targets says what each is"
    raise click.BadParameter(f"required one of {', '.join(names)}, given {value}; {todo}")


def complete_target(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The targets whose names begin so, for the shell."""
    return [name for name in target_names() if name.startswith(incomplete)]
