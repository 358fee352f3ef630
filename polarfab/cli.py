"""The command line: finds the verbs, and turns errors into messages and exit codes.

A verb is the `command` of `polarfab/commands/<section>/<verb>.py`, imported only when it is called.
Exit codes: 0 good, 1 a check found something, 2 bad input or a machine without the means (disk,
memory, permission), 3 a bug of polarfab, 129 the terminal was closed, 130 interrupted, 141 the
reader of the output has ended, 143 terminated.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from compilers.notes import listeners
from inventory.problems import InputError, Problem
from polarfab import __version__
from polarfab.interruption import end_interrupted, notes
from polarfab.output.failure_output import BAD_INPUT, drop_output, print_problems, usage_problem
from polarfab.output.next_steps import say_next
from polarfab.output.option_names import named_problem
from polarfab.output.verb_output import say, volume_options
from polarfab.shared_options import be_strict
from polarfab.verb_list import SECTIONS, VERBS, verb, verb_names, verbs_with_help

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

MACHINE_ERRORS = frozenset(
    {
        *(errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE),
        *(errno.ENOMEM, errno.ENOSPC, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP),
    }
)
"""The errors of the operating system that are no fault of polarfab."""
EXIT_AGAIN_AFTER = 0.05
"""Seconds after which an exit that was lost is tried again."""


class Verbs(click.Group):
    """A group of commands whose modules are imported when they are called."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a verb; if the reader of its output has ended, exit as SIGPIPE would."""
        # Notes of the compiler are printed on terminals only.
        listeners[:] = [say] if sys.stderr.isatty() else []
        try:
            result: object = super().invoke(ctx)
            say_next(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            drop_output()
            raise SystemExit(128 + signal.SIGPIPE) from None
        except InputError as error:
            raise InputError(map(named_problem, error.problems)) from error
        return result

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The verbs in the order of the work, not of the alphabet."""
        return verb_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module, and give its commands what all verbs have.

        These are the options of volume such as `--quiet`, strict parameters, and completion.
        """
        if cmd_name == "help":
            return _help
        command = verb(cmd_name)
        verbs = command.commands.values() if isinstance(command, click.Group) else [command]
        for subcommand in verbs:
            if "--quiet" not in {word for option in subcommand.params for word in option.opts}:
                subcommand.params += volume_options()
            for param in subcommand.params:
                be_strict(param)
            if ctx.resilient_parsing:
                from polarfab.completion import prepare_for_completion

                prepare_for_completion(subcommand)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The verbs that begin with a word, without importing them; options after a hyphen."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(verb, help=description)
            for verb, description in verbs_with_help()
            if verb.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The verbs with their one-line help, without importing them."""
        for section in SECTIONS:
            with formatter.section(section.heading):
                formatter.write_dl(list(section.verbs.items()))
        of_extensions = list(verbs_with_help())[len(VERBS) :]
        if of_extensions:
            with formatter.section("Extensions"):
                formatter.write_dl(of_extensions)


@click.command("help")
@click.argument("words", metavar="[VERB]...", nargs=-1)
@click.pass_context
def _help(context: click.Context, words: tuple[str, ...]) -> None:
    """Show what a verb does, as `polarfab VERB --help`."""
    context.find_root().command.main([*words, "--help"], "polarfab", standalone_mode=False)


def _print_completion(context: click.Context, _option: click.Parameter, shell: str | None) -> None:
    """Print the completion script of a shell, and say where it belongs."""
    if shell and not context.resilient_parsing:
        from polarfab.completion import FILES, script

        click.echo(script(context.command, shell))
        say(f"it belongs in {FILES[shell]}")
        context.exit()


@click.group(
    cls=Verbs,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
    epilog="`polarfab help VERB` shows what a verb takes. Start with:\n\n\b\n"
    "    polarfab init lab && polarfab compile lab/fabric.yaml -o build",
)
@click.version_option(__version__, "-V", "--version", prog_name="polarfab")
@click.option(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    is_eager=True,
    expose_value=False,
    callback=_print_completion,
    help="Print the completion script of a shell and exit.",
)
def cli() -> None:
    """Compile a low-diameter fabric, such as PolarFly.

    polarfab takes a spec and a hardware inventory. It computes the forwarding tables of all
    switches, proves that they deliver every packet, and writes them for the switches.

    A fabric.yaml needs only a name and a topology:

    \b
        name: lab
        topology: {family: polarfly, q: 7}
    """


def main() -> None:
    """Run the command line; never ends in a traceback."""
    # A process without standard output, as in a service, has None there.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123
    signal.signal(signal.SIGTERM, _exit_on_signal)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # not under nohup
        signal.signal(signal.SIGHUP, _exit_on_signal)
    # polarfab has no plugins of pydantic. To look for them in all packages takes 30 ms.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        # click returns the code of an Exit here; a verb returns nothing.
        sys.exit(cli.main(standalone_mode=False, prog_name="polarfab"))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.ClickException as error:
        print_problems(usage_problem(error))
        sys.exit(BAD_INPUT)
    except InputError as error:
        print_problems(*error.problems)
        sys.exit(BAD_INPUT)
    except (click.Abort, KeyboardInterrupt) as error:
        end_interrupted(error)
    except SystemExit as error:
        for note in notes(error):
            print(note, file=sys.stderr)
        raise
    except MemoryError as error:
        message = f"this machine has too little memory for that: {error}"
        sys.exit(_print_machine_error(MemoryError(message)))
    except Exception as error:
        if isinstance(error, FileNotFoundError) and not _has_working_folder():
            message = "the working directory was deleted; cd to another one"
            sys.exit(_print_machine_error(OSError(message)))
        if getattr(error, "errno", None) in MACHINE_ERRORS:
            sys.exit(_print_machine_error(error))
        sys.exit(_report_bug())


def _exit_on_signal(number: int, _frame: FrameType | None) -> None:
    """Exit as after Ctrl-C, so that partial results are removed.

    Further signals do not interrupt this. If a terminal is closed, the shell and the kernel send
    one each.
    """
    for hangup in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(hangup, lambda *_: None)  # not SIG_IGN, which commands would inherit
    sys.unraisablehook = _exit_later
    sys.exit(128 + number)


def _exit_later(unraisable: sys.UnraisableHookArgs) -> None:
    """Exit a moment later if the exit was lost in a function that a library in C has called.

    Machine code is compiled by such a library (LLVM).
    """
    error = unraisable.exc_value
    if not isinstance(error, SystemExit):
        sys.__unraisablehook__(unraisable)
        return
    code = error.code
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(code))
    signal.setitimer(signal.ITIMER_REAL, EXIT_AGAIN_AFTER)


def _has_working_folder() -> bool:
    """Whether the working directory exists."""
    try:
        return bool(Path.cwd())
    except OSError:
        return False


def _print_machine_error(error: Exception) -> int:
    """Print an error of the operating system as one message; returns the exit code."""
    message = str(error)
    if isinstance(error, OSError) and not error.filename:
        try:
            print(flush=True)  # fails again if standard output is full
        except OSError as unwritten:
            message = f"standard output cannot be written: {unwritten.strerror}"
            drop_output()
    print_problems(Problem("", message))
    return BAD_INPUT


def _report_bug() -> int:
    """Write the traceback to a file, and name the file in one message; returns the exit code."""
    import tempfile
    import traceback

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
