"""The value of `--target`: the name of a target that is installed."""

from __future__ import annotations

from typing import Any

import click

from compilers.spec.target_names import BUILT_IN, target_names
from inventory.problems import nearest


class TargetChoice(click.ParamType):
    """The name of a target; which packages register some is read only where it is needed."""

    name = "target"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, if it is that of a target."""
        if value in BUILT_IN or value in (names := target_names()):
            return str(value)
        near = nearest(str(value), names)
        hint = f" Did you mean {near!r}?" if near else ""
        self.fail(f"{value!r} is not one of {', '.join(names)}.{hint}", param, ctx)

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,
        incomplete: str,
    ) -> list[click.shell_completion.CompletionItem]:
        """The targets whose names begin so."""
        there = (name for name in target_names() if name.startswith(incomplete))
        return [click.shell_completion.CompletionItem(name) for name in there]
