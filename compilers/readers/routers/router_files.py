"""Reads the folder of a router into its forwarding, by the grammars next to the system's templates.

What comes in is the folder of one switch, and a `RouterFolder`, which names the files of its
system. What goes out is an `EmittedSwitch` (`read_router`), or the contents of each file
(`read_files`). Classes of targets call `read_router`; `bgp_files` calls `read_files`.

The first file of a folder states everything that the router does. Other files repeat a part of it,
or all of it in another format, as EOS gets commands, and data for the tool AVD. So the reader also
notes where a later file states something else than the first.
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
from compilers.readers.routers.router_comparison import (
    compare_facts,
    compare_interfaces,
    compare_routes,
)
from compilers.readers.routers.router_forwarding import forwarding
from compilers.readers.routers.router_text import RouterText, in_block
from compilers.readers.strict_json import JsonError
from compilers.readers.text_lines import TextLines

Compare = Callable[[str, str], Iterable[tuple[int, str, bool]]]
"""Compares the text of the first file with that of a file in another format. It yields the line and
the text of each differing statement, and whether the first file lacks it; otherwise the two files
state different things."""


class ReadFile(NamedTuple):
    """A file of a router that was read."""

    text: RouterText
    """The contents of the file."""
    engine: TextEngine
    """The engine that read it, with the statements that no verb of the grammar took."""


@dataclass(frozen=True, slots=True)
class RouterFolder:
    """The files in the folder of a router, which depend on its system, and how they are read."""

    target: str
    """The system, by whose grammars they are read."""
    files: tuple[str, ...]
    """The names of the files. The first states everything; the others repeat a part of it."""
    without_interfaces: frozenset[str] = frozenset()
    """The files that state nothing about interfaces."""
    commands: str = ""
    """The name of the grammar for commands that stand as a text in a file of data; "" where there
    are none. They say what the data has no key for."""
    announces_discarded: bool = False
    """Whether BGP announces every route that its policy matches, discarded prefixes too."""
    policy_part: re.Pattern[str] | None = None
    """How statements about a part of a BGP policy begin, with groups for the policy and the part.
    Parts are tried in the order of the text."""
    read_by_others: frozenset[str] = frozenset()
    """The files of which another reader reads the statements that no rule of the grammar takes."""
    other_formats: Mapping[str, Compare] = field(default_factory=dict)
    """By name, the files that have the contents of the first file in another format, each with the
    function that compares their texts."""
    comment_out_additions: tuple[Callable[[str], str], ...] = ()
    """Functions that replace the lines of additions (`compilers.targets.addition`) by comments: the
    additions have readers of their own."""

    def without_additions(self, text: str) -> str:
        """A configuration with comments in the place of the lines of additions."""
        for comment_out in self.comment_out_additions:
            text = comment_out(text)
        return text


def read_router(
    system: RouterFolder, folder: Path, definitions: Collection[str] = ()
) -> EmittedSwitch:
    """Read the folder of a switch with static routes; statements about BGP are unknown there.

    Args:
        system: the files of its system.
        folder: of the switch.
        definitions: names that its grammars take for defined, from the options of rendering.

    Raises:
        OSError: a file is not there.
        ValueError: (file, line, text) a line makes no sense.
    """
    files = read_files(system, folder, definitions)
    for router, engine in files:
        if Path(router.file).name not in system.read_by_others:
            unread = ((line, statement) for statement, line in engine.statement_lines.items())
            router.unread = sorted([*router.unread, *unread])
    routers = [router for router, _ in files]
    if block := routers[0].segments:  # the reader of SRv6 reads these routes
        transit = routers[0].transit
        inside = [prefix for prefix in transit.prefixes if in_block(prefix, block)]
        routers[0].transit = transit.without(inside)
    return forwarding(*routers)


def read_files(
    system: RouterFolder, folder: Path, definitions: Collection[str] = ()
) -> list[ReadFile]:
    """Read the files of a switch; a file that differs from the first one has a fault.

    Raises:
        OSError: a file is not there.
        ValueError: (file, line, text) a line makes no sense.
    """
    files = [_read_file(system, folder / name, definitions) for name in system.files]
    first = files[0].text
    for router, _ in files[1:]:
        if Path(router.file).name not in system.without_interfaces:
            compare_interfaces(first, router)
        compare_facts(first, router)
        compare_routes(first, router)
    # If the first file has faults, nobody knows which of the files is right.
    if system.other_formats and not first.wrong:
        text = _without_lines(read_exact(Path(first.file)), {line for line, _ in first.unread})
        files += [_compared_format(system, folder / name, text) for name in system.other_formats]
    return files


def _without_lines(text: str, lines: Collection[int]) -> str:
    """A text without the lines of these numbers."""
    numbered = enumerate(exact_lines(text), 1)
    return "\n".join(line for number, line in numbered if number not in lines)


def _compared_format(system: RouterFolder, file: Path, text: str) -> ReadFile:
    """The differences between a file in another format and the text of the first file."""
    router = RouterText(str(file))
    with _errors_of(file):
        compare = system.other_formats[file.name]
        for line, statement, first_lacks_it in compare(text, read_exact(file)):
            if first_lacks_it:
                router.add_unread(line, statement)
            else:
                router.add_wrong(line, statement)
    return ReadFile(
        router, TextEngine(grammar(system.target, system.files[0]), RouterActor(router))
    )


def _read_file(system: RouterFolder, file: Path, definitions: Collection[str]) -> ReadFile:
    """Read one file of a switch; its errors name the file."""
    with _errors_of(file):
        return read_text(system, file.name, read_exact(file), str(file), definitions)


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
    system: RouterFolder, name: str, text: str, file: str = "", definitions: Iterable[str] = ()
) -> ReadFile:
    """Read the text of one file by its grammar.

    Args:
        system: the files of its system.
        name: of the file.
        text: the text.
        file: where it is.
        definitions: as in `read_router`.

    Raises:
        ValueError: (line, text) it is no JSON or YAML, where it has to be.
    """
    rules = grammar(system.target, name)
    router = RouterText(file or name)
    actor = RouterActor(router)
    engine = TextEngine(rules, actor, dict.fromkeys(definitions, 0))
    if not rules.tree_format:
        text = system.without_additions(text)
    engine.read(rules.lines(text))
    router.complete_kinds = frozenset(
        kind
        for kind, condition in rules.complete_facts
        if not condition or condition in engine.definition_lines
    )
    for line, commands in actor.command_texts:
        _read_commands(system, engine, actor, line, commands)
    actor.finish(engine)
    return ReadFile(router, engine)


def _read_commands(
    system: RouterFolder, engine: TextEngine, actor: RouterActor, line: int, text: str
) -> None:
    """Read the commands inside a file of data: AVD and NVUE have no keys for routes between VRFs.

    Args:
        system: the files of the system.
        engine: the engine that read the file; it gets the routes.
        actor: the actor of the file.
        line: the line of the file where the commands are.
        text: the commands.
    """
    if system.comment_out_additions:
        # The lines of additions are `!` now. They become empty, as no rule reads a comment here.
        text = re.sub(r"^!$", "", system.without_additions(text), flags=re.M)
    router = actor.router
    # The data of the file defines what the commands refer to.
    definitions = [f"vrf {name}" for name in (router.vrf, *router.marked_routes, "default") if name]
    definitions += [f"routing6 {name}" for name in router.marked_routes]
    if "bgp" in engine.definition_lines:
        definitions.append("bgp")
    inner = TextEngine(
        grammar(system.target, system.commands), actor, dict.fromkeys(definitions, 0)
    )
    lines = TextLines.of(text.encode("utf-8", "replace"))
    whole = system.commands not in system.files
    inner.read(lines.numbered(np.full_like(lines.number, line)), whole=whole)
    for statement in inner.statement_lines:
        actor.add_unread(line, statement)
    for table, rows in inner.routes.items():
        engine.routes.setdefault(table, RouteLines()).absorb(rows)
