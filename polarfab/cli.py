"""The command line: which verbs there are, and what becomes of errors.

A verb is the `command` of `polarfab/commands/<verb>.py`, imported only when it is called.
Exit codes: 0 good, 1 a check found something, 2 bad input or a machine without the
means (disk, memory, permission), 3 our bug, 130 interrupted, 141 nobody reads the output any more,
143 terminated.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import tempfile
import traceback
from importlib import import_module
from pathlib import Path
from types import FrameType

import click

from inventory.problems import InputError, nearest
from polarfab import __version__

VERBS = {
    "design": "Which fabrics can be built: sizes, efficiency, cost; the papers' tables.",
    "analyse": "Distances, paths, load, bisection, resilience, growth of a fabric.",
    "topology": "Print a fabric graph: edges, json, graphml, dot, booksim.",
    "compile": "Spec and inventory to verified tables in a build folder.",
    "verify": "Walk every ordered pair through a build's tables.",
    "throughput": "How much hosts can send under traffic patterns, by the tables.",
    "explain": "The paths between two nodes, hop by hop, with ports.",
    "targets": "The systems that render can write for: what they can do, their options.",
    "render": "Write every switch's configuration for a target.",
    "draw": "The racks as a picture or an interactive page, and plots.",
    "cables": "Cable schedule, labels, bill of materials, install phases.",
    "inventory": "Import and export NetBox and Nautobot data.",
    "check-wiring": "Neighbour tables against the plan, and the smallest repair.",
    "check-routes": "Routing tables of switches against the build: missing, stale, wrong.",
    "push": "Have routers hold the build's routes: read, add, take away, prove, save.",
    "expand": "The larger fabric, and only what must be added.",
    "diff": "What differs between two builds, or between the configurations of both.",
    "plan": "What a move between two builds changes, in which rounds; proof that nobody loses.",
    "rehearse": "Try a move between two builds on an emulated fabric, under traffic.",
    "fsck": "A build or rendered folder, every file against its digest.",
    "rollback": "Put back the build that was proved before the one that is there.",
    "gc": "Remove what killed processes left beside builds and renders.",
    "controller": "Run the OpenFlow controller (Ryu or os-ken) for a build.",
    "status": "How the fabric of a running controller is.",
    "apply": "Move a running fabric to another build, without losing a packet.",
    "emulate": "Bring a scenario up on real parts, check it, tear it down.",
    "bench": "Our speed beside that of peers, in one run.",
    "completion": "Print the completion script of a shell.",
}


MACHINE = frozenset(
    {
        *(errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE),
        *(errno.ENOMEM, errno.ENOSPC, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP),
    }
)
"""What the operating system refuses through no fault of ours."""


class Verbs(click.Group):
    """A group whose commands are imported when they are asked for."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a verb; end as a signal would when nobody reads its output any more."""
        try:
            result: object = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            raise SystemExit(128 + signal.SIGPIPE) from None
        return result

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The verbs in the order of the work, not of the alphabet."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module."""
        if cmd_name not in VERBS:
            near = nearest(cmd_name, VERBS)
            hint = f" Did you mean {near!r}?" if near else ""
            ctx.fail(f"there is no verb {cmd_name!r}.{hint}")
        module = import_module(f"polarfab.commands.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The verbs with their one-line help, without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with:  polarfab compile fabric.yaml -o build && polarfab explain build 0 12",
)
@click.version_option(__version__, prog_name="polarfab")
def cli() -> None:
    """Compile a low-diameter fabric: PolarFly spec and hardware inventory to forwarding tables
    that are proved to forward, and emit them.

    A fabric.yaml needs only a name and a topology:

    \b
        name: lab
        topology: {family: polarfly, q: 7}
    """


def main() -> None:
    """Run the command line; never ends in a traceback."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123
    signal.signal(signal.SIGTERM, _terminated)
    try:
        # click returns the code of an Exit here; a verb returns nothing.
        sys.exit(cli.main(standalone_mode=False, prog_name="polarfab"))
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except InputError as error:
        for problem in error.problems:
            click.echo(f"error: {problem}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except MemoryError as error:
        click.echo(f"error: this machine has too little memory for that: {error}", err=True)
        sys.exit(2)
    except Exception as error:
        if isinstance(error, FileNotFoundError) and not _has_working_folder():
            sys.exit(_refused(OSError("the working directory was deleted; cd to another one")))
        sys.exit(_refused(error) if getattr(error, "errno", None) in MACHINE else _our_bug())


def _terminated(_number: int, _frame: FrameType | None) -> None:
    """Leave as after Ctrl-C, so that what is half done is cleared away."""
    sys.exit(128 + signal.SIGTERM)


def _has_working_folder() -> bool:
    try:
        return bool(Path.cwd())
    except OSError:
        return False


def _drop_output() -> None:
    """What is still buffered cannot be written: do not try again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refused(error: Exception) -> int:
    """The operating system's refusal as one message."""
    message = str(error)
    if isinstance(error, OSError) and not error.filename:
        try:
            print(flush=True)  # an output that was full still is
        except OSError as unwritten:
            message = f"standard output cannot be written: {unwritten.strerror}"
            _drop_output()
    click.echo(f"error: {message}", err=True)
    return 2


def _our_bug() -> int:
    """Keep the traceback in a file, and say so in one message."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="polarfab-bug-", suffix=".txt", delete=False
    ) as file:
        file.write(f"polarfab {__version__}, Python {sys.version}\n{' '.join(sys.argv)}\n\n")
        file.write(traceback.format_exc())
    last = traceback.format_exc().strip().splitlines()[-1]
    click.echo(
        f"this is a bug in polarfab, not in your input: {last}\n"
        f"please report it with {Path(file.name)}",
        err=True,
    )
    return 3
