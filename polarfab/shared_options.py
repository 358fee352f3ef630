"""The options that several verbs take, each declared once: the same name is the same thing.

What a verb does with one beyond that stands behind the first words of its help.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from compilers.spec.target_names import SHIPPED, meant_target, target_names
from controller import API
from inventory.problems import InputError

if TYPE_CHECKING:
    from controller.management.client import Client

V = TypeVar("V", bound=Callable[..., Any])
Decorator = Callable[[V], V]
Decorated = Callable[..., Any]

HTTP = f"http://{API}"
"""Where a controller's management API usually is."""
_READ = click.Path(path_type=Path, exists=True, dir_okay=False)


def together(*options: Decorator[Any]) -> Decorator[Any]:
    """Options as one decorator, in this order in the help."""
    return lambda verb: reduce(lambda made, option: option(made), reversed(options), verb)


def be_strict(param: click.Parameter) -> None:
    """Have a parameter refuse an empty word, and a number that is not finite.

    An empty word would be the working directory, or what is taken where nothing is given.
    """
    kind = param.type
    if isinstance(kind, click.Path) and not isinstance(kind, _Filled):
        param.type = _Filled()
    elif type(kind) is type(click.STRING):
        param.type = _Word()
    elif isinstance(kind, click.FloatRange) and not isinstance(kind, _Finite):
        param.type = _Finite()
    param.type.__dict__.update(kind.__dict__)


class _Finite(click.FloatRange):
    """A number in a range: neither `nan`, which no range excludes, nor `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number.

        Raises:
            click.BadParameter: it is none.
        """
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def _require_filled(
    value: Any, param: click.Parameter | None, ctx: click.Context | None, what: str
) -> None:
    usual = ctx and param and param.name and ctx.get_parameter_source(param.name)
    if value == "" and usual is not ParameterSource.DEFAULT:
        key = param.opts[0] if isinstance(param, click.Option) else param and param.metavar
        raise InputError.of(what, "an empty word", "is a variable not set?", key=key or "")


class _Filled(click.Path):
    """The path of a file or folder, never empty."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path.

        Raises:
            InputError: the word is empty.
        """
        _require_filled(value, param, ctx, "a file or folder")
        return super().convert(value, param, ctx)


class _Word(click.types.StringParamType):
    """A text, never empty."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text.

        Raises:
            InputError: it is empty.
        """
        _require_filled(value, param, ctx, "a value")
        return super().convert(value, param, ctx)


def known_target(_ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The name, if it is that of a target, or none was given.

    Raises:
        InputError: no target is called so.
    """
    if value is None or value in SHIPPED or value in (names := target_names()):
        return value
    near = meant_target(value, names)
    todo = f"did you mean {near}?" if near else "polarfab targets says what each is"
    key = param.opts[0] if isinstance(param, click.Option) else "TARGET"
    raise InputError.of(f"one of {', '.join(names)}", value, todo, key=key)


def complete_target(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The targets whose names begin so, for the shell."""
    return [name for name in target_names() if name.startswith(incomplete)]


def target_options(
    required: bool = False, more: str = "", rendered: bool = False
) -> Decorator[Any]:
    """--target and --set NAME=VALUE; `rendered`: the files or routes are there already."""
    return together(
        click.option(
            "--target",
            metavar="TARGET",
            required=required,
            callback=known_target,
            shell_complete=complete_target,
            help=f"The system, as `polarfab targets` lists them{more and f'; {more}'}.",
        ),
        set_option("; the same as at `render`" if rendered else ""),
    )


def set_option(more: str = "", of: str = "the target") -> Decorator[Any]:
    """--set NAME=VALUE."""
    return click.option(
        "--set",
        "words",
        metavar="NAME=VALUE",
        multiple=True,
        help=f"An option of {of}; again for more{more}.",
    )


hosts_per_node = click.option(
    "--hosts-per-node",
    type=click.IntRange(0, 1024),
    help="Hosts per switch; else as in the build, and 1 where there is none.",
)
fail_option = click.option(
    "--fail",
    "failures",
    metavar="A-B|NODE|GROUP",
    multiple=True,
    help="Show what happens while the link between two nodes, a node, or what shares a risk "
    "(module:NODE/MODULE, cage:NODE/PORT, rack:RACK, trunk:RACK-RACK, risk:NAME) is down.",
)
only_nodes = click.option(
    "--node", "names", multiple=True, help="Only this switch; again for more."
)
accept_option = click.option(
    "--accept",
    metavar="TEXT",
    multiple=True,
    help="Statements that begin so, or a file, come from templates of your own; again for more.",
)

scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    default="",
    help="Have the workers of this Dask scheduler share the work, not this machine's cores.",
)


def unverified_option(more: str = "") -> Decorator[Any]:
    """--unverified, and what that means for the verb."""
    text = f"Take a build that verify has not passed on{more and f': {more}'}."
    return click.option("--unverified", is_flag=True, help=text)


phases_option = click.option(
    "--phases", type=click.IntRange(1), help="Phases of the installation.  [default: 8]"
)


class Controller(NamedTuple):
    """How a running controller is reached."""

    url: str
    token_file: Path | None
    authority: Path | None
    named: bool = True

    def client(self) -> Client:
        """A client of its management API.

        Raises:
            InputError: the URL is not http or https, or a file cannot be used.
        """
        from controller.management.client import Client

        return Client.to(self.url, "--to", self.token_file, self.authority)


def controller_options(verb: V) -> Decorated:
    """--to, --token-file and --ca, as one `Controller`."""

    @wraps(verb)
    def reached(
        *given: Any, url: str | None, token_file: Path | None, authority: Path | None, **more: Any
    ) -> Any:
        controller = Controller(url or HTTP, token_file, authority, url is not None)
        return verb(*given, controller=controller, **more)

    usual = f"The controller's management API.  [default: {HTTP}]"
    allowed = "A file whose first line is a token that the controller accepts."
    certificate = "The authority of the controller's certificate (PEM), for https."
    options: Decorator[Decorated] = together(
        click.option("--to", "url", metavar="URL", help=usual),
        click.option("--token-file", type=_READ, help=allowed),
        click.option("--ca", "authority", type=_READ, help=certificate),
    )
    return options(reached)


def old_build(required: bool = False, more: str = "") -> Decorator[Any]:
    """--from OLDBUILD."""
    return click.option(
        "--from",
        "old",
        metavar="OLDBUILD",
        type=click.Path(path_type=Path),
        required=required,
        help=f"The old build{more and f'; {more}'}.",
    )


framework_option = click.option(
    "--framework",
    type=click.Choice(["ryu", "os-ken"]),
    help="The controller's framework; Ryu when both are installed.",
)


def _report_place(_ctx: click.Context, _param: click.Parameter, place: Path | None) -> Path | None:
    """A folder, or a file of a form that reports have.

    Raises:
        InputError: a file of another form.
    """
    if place is None or not place.suffix[1:].isalpha() or place.is_dir():
        return place
    from mininet_scenarios.verdict.report import FORMS

    if place.suffix not in FORMS:
        required = f"a folder, or a file that ends in {', '.join(FORMS)}"
        raise InputError.of(required, str(place), key="--report")
    return place


run_options = together(
    click.option(
        "--keep",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="Keep builds and all logs in this folder.",
    ),
    click.option(
        "--report",
        metavar="DIR|FILE",
        type=click.Path(path_type=Path),
        callback=_report_place,
        help="Write a report: FILE.html, FILE.xml (JUnit), FILE.json, or all three into DIR.",
    ),
)
