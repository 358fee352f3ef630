"""The problems that end a verb: lines on stderr, and with --json one document on stdout.

The document is `{"problems": [{file, line, key, required, given, todo}, …]}` on one line, all of
them; a mistake in the words of a verb, or a refusal of the machine, is one whose `todo` or `given`
is the whole message.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from inventory.problems import Problem, did_you_mean, few
from polarfab.output.verb_output import warn


def tell(*problems: Problem) -> int:
    """Print problems, alike ones folded without --verbose; gives the exit code of bad input."""
    verbose = "-v" in sys.argv or "--verbose" in sys.argv
    for problem in problems if verbose else few(problems):
        warn(f"error: {problem}")
    if wants_json(sys.argv):
        keys = ("file", "line", "key", "required", "given", "todo")
        rows = [{key: getattr(problem, key) for key in keys} for problem in problems]
        try:
            click.echo(json.dumps({"problems": rows}))
        except OSError:
            drop_output()
    return 2


def drop_output() -> None:
    """What is still buffered cannot be written: do not try again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def wants_json(words: Sequence[str]) -> bool:
    """Whether a verb with these words prints JSON; words behind `--` are no options."""
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def usage_problem(error: click.ClickException) -> Problem:
    """What click found wrong with the words of a verb, in the form of our own messages."""
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path} --help shows what it takes" if context else ""
    param = getattr(error, "param", None)
    match error:
        case click.MissingParameter() if param:
            return Problem("a value", "none", hint, key=_name(param, context))
        case click.BadOptionUsage() if match := re.search(r" requires (an|\d+) arg", error.message):
            todo = "--help shows what it takes"
            if match[1] == "an":
                return Problem("a value", "none", todo, key=error.option_name)
            return Problem(f"{match[1]} words", "fewer", todo, key=error.option_name)
        case click.NoSuchOption():
            return Problem("an option", error.option_name, _meant(error) or hint)
        case click.BadParameter() if param:
            given = _given(error.message)
            todo = did_you_mean(given, getattr(param.type, "choices", ()), hint)
            required = _wanted(param.type)
            if param.nargs > 1 and param.metavar:
                required = param.metavar
            return Problem(required, given, todo, key=_name(param, context))
    text = error.format_message().rstrip(".")
    if context and (match := re.match(r"No such command '(.*?)'", text)):
        words = context.command.list_commands(context)
        return Problem(f"one of {', '.join(words)}", match[1], did_you_mean(match[1], words, hint))
    if match := re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", text):
        return _surplus(match[1], context, hint) if context else Problem("no more words", match[1])
    ours = not text[:1].isupper()  # says itself what to do; click's sentences do not
    return Problem("", "", text if ours or not hint else f"{text}; {hint}")


def _surplus(words: str, context: click.Context, hint: str) -> Problem:
    """More words than the verb takes; where it writes something they were likely meant for -o."""
    options = {word for parameter in context.command.params for word in parameter.opts}
    arguments = (
        parameter for parameter in context.command.params if isinstance(parameter, click.Argument)
    )
    takes = " ".join(parameter.make_metavar(context) for parameter in arguments)
    given = f"{takes}; given {words} as well" if takes else f"no argument; given {words}"
    todo = f"did you mean -o {words}?" if "-o" in options else hint
    return Problem("", f"{context.command_path.partition(' ')[2]} takes {given}", todo)


def _meant(error: click.NoSuchOption) -> str:
    """The option that was likely meant."""
    verb = error.ctx is not None and error.ctx.parent is not None
    if not verb and error.option_name in ("-q", "-v", "--quiet", "--verbose", "--json"):
        return "it goes behind the verb"
    near = "--json" if error.option_name == "-j" else " or ".join(sorted(error.possibilities or ()))
    return f"did you mean {near}?" if near else ""


def _name(param: click.Parameter, context: click.Context | None) -> str:
    """How a user writes a parameter: the option, or the word for the argument."""
    if isinstance(param, click.Option):
        return param.opts[0]
    return param.make_metavar(context or click.Context(click.Command("polarfab")))


def _given(message: str) -> str:
    """The value in click's `'x' is not a valid integer`, `File 'x' does not exist` and the like."""
    match = re.match(r"(?:\w+ )?'(.*)' |(\S+) is not ", message)
    if match is None:
        return message.rstrip(".") or "an empty word"
    return next(word for word in match.groups() if word is not None) or "an empty word"


def _wanted(kind: click.ParamType[Any]) -> str:
    """What a value of a type has to be."""
    match kind:
        case click.Choice():
            return f"one of {', '.join(kind.choices)}"
        case click.Path():
            return "a folder that is there" if not kind.file_okay else "a file that is there"
        case click.IntRange() | click.FloatRange():
            number = "a whole number" if isinstance(kind, click.IntRange) else "a number"
            least = f"above {kind.min}" if kind.min_open else f"from {kind.min}"
            return f"{number} {least}" + (f" to {kind.max}" if kind.max is not None else "")
        case _:
            return {"integer": "a whole number", "float": "a number"}.get(kind.name, kind.name)
