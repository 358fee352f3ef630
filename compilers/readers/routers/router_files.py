"""Readers of a router's folder, by the grammars next to the templates of its system.

The first file states everything that the router does. A system may get the same in a second form,
as EOS gets commands and data for AVD: then the second file has to state the same as the first.
Classes of targets call `read_router`; `bgp_files` calls `read_files`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from compilers.readers.emitted_forwarding import EmittedSwitch
from compilers.readers.exact_text import exact_lines, read_exact
from compilers.readers.grammar.rules import grammar
from compilers.readers.grammar.text_engine import TextEngine
from compilers.readers.route_tables import RouteLines
from compilers.readers.routers.router_actor import RouterActor
from compilers.readers.routers.router_forwarding import (
    agree,
    agree_on_facts,
    agree_on_interfaces,
    forwarding,
)
from compilers.readers.routers.router_text import RouterText, in_block
from compilers.readers.strict_json import JsonError
from compilers.readers.text_lines import TextLines


class ReadFile(NamedTuple):
    """A file of a router that was read."""

    text: RouterText
    """The contents of the file."""
    engine: TextEngine
    """The engine that read it, with the statements that no verb of the grammar took."""


@dataclass(frozen=True, slots=True)
class RouterFolder:
    """The files of a router on one system, and how they are read."""

    target: str
    """The system, by whose grammars they are read."""
    files: tuple[str, ...]
    """Names of files. The first states everything; the others repeat a part of it."""
    without_interfaces: frozenset[str] = frozenset()
    """The files that state nothing about interfaces."""
    commands: str = ""
    """The name of the grammar for commands inside a file of data, which has no key for them."""
    announces_discarded: bool = False
    """Whether BGP announces every route that its policy matches, discarded prefixes too."""
    policy_part: re.Pattern[str] | None = None
    """How statements about a part of a BGP policy begin, with groups for the policy and the part.
    Parts are tried in the order of the text."""
    read_elsewhere: frozenset[str] = frozenset()
    """The files in which another reader reads the statements that no rule of the grammar takes."""
    forms: Mapping[str, Callable[[str, str], Iterable[tuple[int, str, bool]]]] = field(
        default_factory=dict
    )
    """Files that have the first one's contents in another form. Each name has a function that takes
    the texts of both, and yields a line, a statement, and whether the first lacks the statement;
    else the two say different things."""
    without_others: tuple[Callable[[str], str], ...] = ()
    """Functions that replace lines of additions by comments: their own readers read them."""

    def own_lines(self, text: str) -> str:
        """A configuration with comments in the place of the lines of additions."""
        for without in self.without_others:
            text = without(text)
        return text


def read_router(form: RouterFolder, folder: Path, defined: Collection[str] = ()) -> EmittedSwitch:
    """Read the folder of a switch with static routes; statements about BGP are unknown there.

    Args:
        form: the files of its system.
        folder: of the switch.
        defined: names that its grammars take for defined, from the options of rendering.

    Raises:
        OSError: a file is not there.
        ValueError: (file, line, text) a line makes no sense.
    """
    files = read_files(form, folder, defined)
    for router, engine in files:
        if Path(router.file).name not in form.read_elsewhere:
            untaken = ((line, statement) for statement, line in engine.statements.items())
            router.strange = sorted([*router.strange, *untaken])
    routers = [router for router, _ in files]
    if block := routers[0].segments:  # the reader of SRv6 reads these routes
        inside = [p for p in routers[0].transit.prefixes if in_block(p, block)]
        routers[0].transit = routers[0].transit.without(inside)
    return forwarding(*routers)


def read_files(form: RouterFolder, folder: Path, defined: Collection[str] = ()) -> list[ReadFile]:
    """Read the files of a switch; a file that differs from the first one has a fault.

    Raises:
        OSError: a file is not there.
        ValueError: (file, line, text) a line makes no sense.
    """
    files = [_read_file(form, folder / name, defined) for name in form.files]
    first = files[0].text
    for repeated, _ in files[1:]:
        if Path(repeated.file).name not in form.without_interfaces:
            agree_on_interfaces(first, repeated)
        agree_on_facts(first, repeated)
        agree(first, repeated)
    if form.forms and not first.faults:  # with faults, nobody knows which of the forms is right
        text = _without(read_exact(Path(first.file)), {line for line, _ in first.strange})
        files += [_other_form(form, folder / name, text) for name in form.forms]
    return files


def _without(text: str, lines: Collection[int]) -> str:
    """A text without the lines of these numbers."""
    numbered = enumerate(exact_lines(text), 1)
    return "\n".join(line for number, line in numbered if number not in lines)


def _other_form(form: RouterFolder, file: Path, text: str) -> ReadFile:
    """The differences between another form of the first file and that file's text."""
    router = RouterText(str(file))
    with _errors_of(file):
        for line, statement, additional in form.forms[file.name](text, read_exact(file)):
            if additional:
                router.unknown(line, statement)
            else:
                router.fault(line, statement)
    return ReadFile(router, TextEngine(grammar(form.target, form.files[0]), RouterActor(router)))


def _read_file(form: RouterFolder, file: Path, defined: Collection[str]) -> ReadFile:
    """Read one file of a switch; its errors name the file."""
    with _errors_of(file):
        return read_text(form, file.name, read_exact(file), str(file), defined)


@contextmanager
def _errors_of(file: Path) -> Iterator[None]:
    """Turn a ValueError about a text into one with the file, the line and what is wrong."""
    try:
        yield
    except JsonError as error:
        raise ValueError(str(file), error.line, str(error)) from error
    except ValueError as error:
        line, text = error.args if len(error.args) == 2 else (0, str(error))
        raise ValueError(str(file), line, text) from error


def read_text(
    form: RouterFolder, name: str, text: str, file: str = "", defined: Iterable[str] = ()
) -> ReadFile:
    """Read the text of one file by its grammar.

    Args:
        form: the files of its system.
        name: of the file.
        text: the text.
        file: where it is.
        defined: see `read_router`.

    Raises:
        ValueError: (line, text) it is no JSON or YAML, where it has to be.
    """
    rules = grammar(form.target, name)
    router = RouterText(file or name)
    actor = RouterActor(router)
    engine = TextEngine(rules, actor, dict.fromkeys(defined, 0))
    if not rules.tree:
        text = form.own_lines(text)
    engine.read(rules.lines(text))
    router.stated = frozenset(
        kind for kind, condition in rules.facts if not condition or condition in engine.defined
    )
    for line, commands in actor.commands_:
        _read_commands(form, engine, actor, line, commands)
    actor.finish(engine)
    return ReadFile(router, engine)


def _read_commands(
    form: RouterFolder, engine: TextEngine, actor: RouterActor, line: int, text: str
) -> None:
    """Read the commands inside a file of data: AVD and NVUE have no keys for routes between VRFs.

    Args:
        form: the files of the system.
        engine: that of the file, which gets the routes.
        actor: that of the file.
        line: the line of the file where the commands are.
        text: the commands.
    """
    if form.without_others:
        text = re.sub(r"^!$", "", form.own_lines(text), flags=re.M)
    router = actor.router
    defined = [f"vrf {name}" for name in (router.vrf, *router.stages, "default") if name]
    defined += [f"routing6 {name}" for name in router.stages]
    if "bgp" in engine.defined:
        defined.append("bgp")
    inner = TextEngine(grammar(form.target, form.commands), actor, dict.fromkeys(defined, 0))
    lines = TextLines.of(text.encode("utf-8", "replace"))
    whole = form.commands not in form.files
    inner.read(lines.numbered(np.full_like(lines.number, line)), whole=whole)
    for statement in inner.statements:
        actor.unknown(line, statement)
    for table, rows in inner.routes.items():
        engine.routes.setdefault(table, RouteLines()).absorb(rows)
