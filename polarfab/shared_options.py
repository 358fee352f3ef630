"""The options that several verbs take, each declared once, so that a name has one meaning.

`shared` makes the option of a verb. Its help begins with the common words; the meaning for this
verb follows them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from compilers.spec.target_names import SHIPPED, meant_target, target_names
from controller import API
from inventory.problems import InputError

if TYPE_CHECKING:
    from polarfab.controller_client import Client

V = TypeVar("V", bound=Callable[..., Any])
"""A verb: the function that click calls."""
Decorator = Callable[[V], V]
"""An option, which click adds to a verb as a decorator."""
Decorated = Callable[..., Any]
"""A verb with options."""

HTTP = f"http://{API}"
"""The URL of a controller's management API by default."""
_EXISTING_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
"""The type of an option that names an existing file."""


def together(*options: Decorator[Any]) -> Decorator[Any]:
    """Several options as one decorator; the help lists them in this order."""

    def decorate(verb: Any) -> Any:
        """The verb with all options. Decorators apply from the last to the first."""
        for option in reversed(options):
            verb = option(verb)
        return verb

    return decorate


def be_strict(param: click.Parameter) -> None:
    """Have a parameter refuse an empty word, and a number that is not finite.

    click would take an empty word for the working directory, or for a value that was left out.
    """
    kind = param.type
    if isinstance(kind, click.Path) and not isinstance(kind, _Filled):
        param.type = _Filled()
    elif type(kind) is type(click.STRING):  # a text, and no type of polarfab
        param.type = _Word()
    elif isinstance(kind, click.FloatRange) and not isinstance(kind, _Finite):
        param.type = _Finite()
    # The new type keeps the settings of the old one, such as its bounds.
    param.type.__dict__.update(kind.__dict__)


class _Finite(click.FloatRange):
    """A number in a range, but neither `nan`, which no range excludes, nor `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number.

        Raises:
            click.BadParameter: the value is no finite number in the range.
        """
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class _NeverEmpty(click.ParamType):  # type: ignore[type-arg]
    """A word that is not empty."""

    what: str
    """What the word has to be, for messages."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value.

        Raises:
            InputError: the word is empty.
        """
        source = ctx and param and param.name and ctx.get_parameter_source(param.name)
        if value == "" and source is not ParameterSource.DEFAULT:
            key = param.opts[0] if isinstance(param, click.Option) else param and param.metavar
            todo = "is a variable not set?"
            raise InputError.of(self.what, "an empty word", todo, key=key or "")
        return super().convert(value, param, ctx)


class _Filled(_NeverEmpty, click.Path):
    """The path of a file or folder, never empty."""

    what = "a file or folder"


class _Word(_NeverEmpty, click.types.StringParamType):
    """A text, never empty."""

    what = "a value"


def failure_kinds(
    _: click.Context, __: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """The kinds of failures, from an option given several times or a list with commas."""
    from compilers.proof.failures.risk_cases import require_kind

    chosen = [word for value in values for word in value.split(",")]
    for word in chosen:
        require_kind(word, "--failures")
    return tuple(dict.fromkeys(chosen))


def known_target(_ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The name of a target; None if the user has named none.

    Raises:
        InputError: there is no target of this name.
    """
    if value is None or value in SHIPPED:
        return value
    names = target_names()
    if value in names:
        return value
    meant = meant_target(value, names)
    todo = f"did you mean {meant}?" if meant else "polarfab targets says what each is"
    key = param.opts[0] if isinstance(param, click.Option) else "TARGET"
    raise InputError.of(f"one of {', '.join(names)}", value, todo, key=key)


def complete_target(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """The targets whose names begin with a word, for the shell's completion."""
    return [name for name in target_names() if name.startswith(incomplete)]


class Words(click.Group):
    """A verb of two words, such as `check spec`. The help lists them in the order of the work."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The second words, in the order in which they were declared."""
        return [*self.commands]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs, each with the whole first sentence of its help."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(word, verb.get_short_help_str(200)) for word, verb in self.commands.items()]
            )


class Format(click.Choice[str]):
    """The type of --format: one of a verb's formats."""

    def __repr__(self) -> str:
        return "Format"


SHARED: dict[str, dict[str, Any]] = {
    "--output": {"type": click.Path(path_type=Path), "help": "Where to write"},
    "--target": {
        "metavar": "TARGET",
        "callback": known_target,
        "shell_complete": complete_target,
        "help": "The system, as `polarfab targets` lists them",
    },
    "--set": {
        "metavar": "NAME=VALUE",
        "multiple": True,
        "help": "An option of the target; again for more",
    },
    "--accept": {
        "metavar": "TEXT",
        "multiple": True,
        "help": "Statements that begin so, or a file, come from templates of your own; again for "
        "more",
    },
    "--node": {"multiple": True, "help": "Only this switch; again for more"},
    "--from": {
        "metavar": "OLDBUILD",
        "type": click.Path(path_type=Path),
        "help": "The old build",
    },
    "--replace-cables": {
        "is_flag": True,
        "help": "Plan the ports of cables and hosts anew; nodes and numbers stay",
    },
    "--to": {"metavar": "URL", "help": f"The controller's management API  [default: {HTTP}]"},
    "--token-file": {"type": click.Path(path_type=Path), "help": "A file with a token a line"},
    "--ca": {"type": _EXISTING_FILE, "help": "The authority of the controller's certificate (PEM)"},
    "--fail": {
        "metavar": "A-B|NODE|GROUP",
        "multiple": True,
        "help": "Show what happens while the link between two nodes, a node, or what shares a risk "
        "(module:NODE/MODULE, cage:NODE/PORT, rack:RACK, trunk:RACK-RACK, risk:NAME) is down",
    },
    "--pattern": {"metavar": "PATTERN", "help": "The traffic pattern"},
    "--hosts-per-node": {
        "type": click.IntRange(0, 1024),
        "help": "Hosts per switch",
    },
    "--q": {"type": int, "help": "Order of the field, a prime power"},
    "--supernode": {
        "metavar": "KIND",
        "help": "PolarStar: inductive-quad, paley, bdf, cayley or complete",
    },
    "--degree": {"type": int, "help": "PolarStar: degree of the supernode"},
    "--engine": {
        "type": click.Choice(["auto", "mininet", "ovs-fabric", "linux", "frr", "model"]),
        "help": "What to run on; auto is Mininet where it can run",
    },
    "--framework": {
        "type": click.Choice(["ryu", "os-ken"]),
        "help": "The controller's framework",
    },
    "--scheduler": {
        "metavar": "ADDRESS",
        "default": "",
        "show_default": False,
        "help": "Have the workers of this Dask scheduler share the work, not this machine's cores",
    },
    "--seed": {"type": click.IntRange(0), "default": 0, "help": "Seed of the random numbers"},
    "--unverified": {"is_flag": True, "help": "Take a build that verify has not passed on"},
    "--quick": {"is_flag": True, "help": "Leave out what takes long"},
    "--name": {"help": "The name"},
}
"""By name, the arguments of `click.option` for options that several verbs take. `help` has the
first words of their help."""


def shared(
    name: str,
    *,
    meaning: str = "",
    short_name: str | None = None,
    parameter: str | None = None,
    **settings: Any,
) -> Decorator[Any]:
    """An option of `SHARED` for a verb.

    Args:
        name: the name of the option.
        meaning: what it means for this verb, for the help.
        short_name: a second name of one letter, such as `-o`.
        parameter: the name of the verb's parameter, if it differs from that of the option.
        settings: arguments of `click.option` for this verb. `usual` is the value if the user sets
            none; unlike click's `default` it does not count as set by the user.
    """
    declared = {**SHARED[name], **settings}
    usual = declared.pop("usual", None)
    if usual is not None:
        declared["callback"] = lambda _context, _option, value: usual if value is None else value
        meaning += f"  [default: {usual}]"
    text = declared.pop("help")
    text += f"; {meaning}" if meaning.strip() else meaning
    words, sign, default = text.partition("  [")
    help_line = f"{words.rstrip(';. ')}.{sign}{default}"
    declarations = [word for word in (name, short_name, parameter) if word is not None]
    return click.option(*declarations, help=help_line, **declared)


def output_option(meaning: str, **settings: Any) -> Decorator[Any]:
    """-o, the file or folder that a verb writes."""
    return shared("--output", meaning=meaning, short_name="-o", **settings)


def format_option(*names: str, what: str = "else a table") -> Decorator[Any]:
    """--format, one of these names."""
    text = f"The format: {', '.join(names)}; {what}."
    return click.option("--format", "form", type=Format(names), metavar="FORMAT", help=text)


def target_options(
    required: bool = False, more: str = "", rendered: bool = False
) -> Decorator[Any]:
    """--target and --set NAME=VALUE; a verb gets the latter as `option_words`.

    Args:
        required: whether the target must be named.
        more: what the target means for the verb, for the help.
        rendered: whether the verb reads files or routes that were rendered before.
    """
    return together(
        shared("--target", meaning=more, required=required),
        shared(
            "--set",
            meaning="the same as at `render`" if rendered else "",
            parameter="option_words",
        ),
    )


class ControllerAddress(NamedTuple):
    """The address of a running controller's management API."""

    url: str
    """The URL of its management API."""
    token_file: Path | None
    """The file whose first line is a token; None for no token."""
    authority: Path | None
    """The authority of the controller's certificate (PEM), for https."""
    named: bool = True
    """Whether the user named the URL."""

    def client(self) -> Client:
        """A client of the management API.

        Raises:
            InputError: the URL is not http or https, or a file cannot be used.
        """
        from polarfab.controller_client import Client

        return Client.to(self.url, key="to", tokens=self.token_file, authority=self.authority)


def controller_options(verb: V) -> Decorated:
    """--to, --token-file and --ca, which a verb gets as one `ControllerAddress`."""

    @wraps(verb)
    def with_address(
        *arguments: Any,
        url: str | None,
        token_file: Path | None,
        authority: Path | None,
        **parameters: Any,
    ) -> Any:
        """Call the verb with the address of the controller."""
        controller = ControllerAddress(url or HTTP, token_file, authority, url is not None)
        return verb(*arguments, controller=controller, **parameters)

    options: Decorator[Decorated] = together(
        shared("--to", parameter="url"),
        shared("--token-file", meaning="the first is sent"),
        shared("--ca", meaning="for https", parameter="authority"),
    )
    return options(with_address)


def _report_place(_ctx: click.Context, _param: click.Parameter, place: Path | None) -> Path | None:
    """The place of a report: a folder, or a file of a form that reports have.

    Raises:
        InputError: the file has another form.
    """
    if place is None or not place.suffix[1:].isalpha() or place.is_dir():
        return place
    from mininet_scenarios.verdict.report import REPORT_SUFFIXES

    if place.suffix not in REPORT_SUFFIXES:
        required = f"a folder, or a file that ends in {', '.join(REPORT_SUFFIXES)}"
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
"""--keep and --report, the options of verbs that run an emulation."""
