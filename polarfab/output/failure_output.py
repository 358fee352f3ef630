"""Prints the problems that end a verb, and turns click's errors into problems.

Problems are lines on stderr, and with --json also one document on stdout, on one line:
`{"problems": [{file, line, key, required, given, todo}, …]}`. A mistake in the words of a verb, or
an error of the operating system, has the whole message in `todo` or `given`.
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

BAD_INPUT = 2
"""The exit code of a verb that problems have ended."""
UNKNOWN_VERB = re.compile(r"No such command '(.*?)'")
"""click's message about an unknown verb: `No such command 'veryfi'.`"""
SURPLUS_WORDS = re.compile(r"Got unexpected extra arguments? \((.*)\)")
"""click's message about too many words: `Got unexpected extra arguments (a b)`."""
LACKING_WORDS = re.compile(r" requires (an|\d+) arg")
"""click's message about an option without its words: `Option '--x' requires 2 arguments.`"""
WRONG_VALUE = re.compile(r"(?:\w+ )?'(.*)' |(\S+) is not ")
"""click's messages about a value: `'x' is not a valid integer`, `File 'x' does not exist`."""


def print_problems(*problems: Problem) -> None:
    """Print problems; without --verbose similar problems are printed as one."""
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


def drop_output() -> None:
    """Drop buffered output that cannot be written, so that Python does not try again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def wants_json(words: Sequence[str]) -> bool:
    """Whether a verb with these words prints JSON; words after `--` are no options."""
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def usage_problem(error: click.ClickException) -> Problem:
    """An error of click about the words of a verb, as a problem."""
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path} --help shows what it takes" if context else ""
    param = getattr(error, "param", None)
    match error:
        case click.MissingParameter() if param:
            return Problem("a value", "none", hint, key=_name(param, context))
        case click.BadOptionUsage() if match := LACKING_WORDS.search(error.message):
            todo = "--help shows what it takes"
            if match[1] == "an":
                return Problem("a value", "none", todo, key=error.option_name)
            return Problem(f"{match[1]} words", "fewer", todo, key=error.option_name)
        case click.NoSuchOption():
            return Problem("an option", error.option_name, _similar_option(error) or hint)
        case click.BadParameter() if param:
            value = _value_in(error.message)
            todo = did_you_mean(value, getattr(param.type, "choices", ()), hint)
            required = _required(param.type)
            if param.nargs > 1 and param.metavar:
                required = param.metavar
            return Problem(required, value, todo, key=_name(param, context))
    return _problem_of_text(error.format_message().rstrip("."), context, hint)


def _problem_of_text(text: str, context: click.Context | None, hint: str) -> Problem:
    """The problem for the text of an error.

    Args:
        text: the text, without a full stop.
        context: the context of the verb, if it is known.
        hint: what to do by default.
    """
    match = UNKNOWN_VERB.match(text)
    if context and match and isinstance(context.command, click.Group):
        verbs = context.command.list_commands(context)
        return Problem(f"one of {', '.join(verbs)}", match[1], did_you_mean(match[1], verbs, hint))
    match = SURPLUS_WORDS.fullmatch(text)
    if match:
        return _surplus(match[1], context, hint) if context else Problem("no more words", match[1])
    # A message of polarfab begins with a small letter, and says itself what to do.
    is_of_polarfab = not text[:1].isupper()
    return Problem("", "", text if is_of_polarfab or not hint else f"{text}; {hint}")


def _surplus(words: str, context: click.Context, hint: str) -> Problem:
    """The problem of more words than a verb takes; they may be meant for -o if it writes a file."""
    options = {word for parameter in context.command.params for word in parameter.opts}
    arguments = (
        parameter for parameter in context.command.params if isinstance(parameter, click.Argument)
    )
    arguments_taken = " ".join(parameter.make_metavar(context) for parameter in arguments)
    message = (
        f"{arguments_taken}; given {words} as well"
        if arguments_taken
        else f"no argument; given {words}"
    )
    todo = f"did you mean -o {words}?" if "-o" in options else hint
    return Problem("", f"{context.command_path.partition(' ')[2]} takes {message}", todo)


def _similar_option(error: click.NoSuchOption) -> str:
    """What to do about an unknown option: the option that was probably meant; "" if none is."""
    is_after_verb = error.ctx is not None and error.ctx.parent is not None
    options_of_verbs = ("-q", "-v", "--quiet", "--verbose", "--json")
    if not is_after_verb and error.option_name in options_of_verbs:
        return "it goes behind the verb"
    meant = (
        "--json" if error.option_name == "-j" else " or ".join(sorted(error.possibilities or ()))
    )
    return f"did you mean {meant}?" if meant else ""


def _name(param: click.Parameter, context: click.Context | None) -> str:
    """A parameter as a user writes it: the option, or the word for the argument."""
    if isinstance(param, click.Option):
        return param.opts[0]
    return param.make_metavar(context or click.Context(click.Command("polarfab")))


def _value_in(message: str) -> str:
    """The wrong value that a message of click names (`WRONG_VALUE`)."""
    match = WRONG_VALUE.match(message)
    if match is None:
        return message.rstrip(".") or "an empty word"
    return next(word for word in match.groups() if word is not None) or "an empty word"


def _required(kind: click.ParamType[Any]) -> str:
    """The values that a type of parameter takes, in words."""
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
