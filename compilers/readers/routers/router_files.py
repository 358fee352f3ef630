"""Readers of the folders of routers whose links have addresses, by the templates' grammars.

Where a system gets the same in two files, the second has to say what the first says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

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

Read = tuple[RouterText, TextEngine]


@dataclass(frozen=True, slots=True)
class RouterFolder:
    """The files of a router that one system reads, and what is particular about them."""

    target: str
    """Whose grammars read them."""
    files: tuple[str, ...]
    """The first says everything; others say a part of it again."""
    without_interfaces: frozenset[str] = frozenset()
    """Files that say nothing of interfaces."""
    commands: str = ""
    """The grammar of the commands that a file of data has for what it has no key for."""
    announces_discarded: bool = False
    """Whether the policy of BGP announces every route that it matches, discarded ones too."""
    policy_part: re.Pattern[str] | None = None
    """How statements begin about the parts of a policy, which are tried in the order of the text:
    the policy, and the part."""
    read_elsewhere: frozenset[str] = frozenset()
    """Files whose statements that no rule knows are others' to read."""
    forms: Mapping[str, Callable[[str, str], Iterable[tuple[int, str, bool]]]] = field(
        default_factory=dict
    )
    """Files that are another form of the first: by name what one says otherwise, from both texts:
    the line, the statement, and whether it is one more."""
    without_others: tuple[Callable[[str], str], ...] = ()
    """Each puts comments in the place of lines of a configuration that others read."""

    def own_lines(self, text: str) -> str:
        """A configuration with comments in the place of lines that others read."""
        for without in self.without_others:
            text = without(text)
        return text


def read_router(form: RouterFolder, folder: Path, defined: Collection[str] = ()) -> EmittedSwitch:
    """A folder of a switch with static routes: statements about BGP have no place there.

    Args:
        form: the files of its system.
        folder: of the switch.
        defined: what its grammars take for defined, by the options that it was rendered with.

    Raises:
        OSError: a file is not there.
        ValueError: (file, line, text) it makes no sense.
    """
    found = read_files(form, folder, defined)
    for router, engine in found:
        if Path(router.file).name not in form.read_elsewhere:
            router.strange = sorted([*router.strange, *((n, t) for t, n in engine.said.items())])
    routers = [router for router, _ in found]
    if block := routers[0].segments:
        inside = [p for p in routers[0].transit.prefixes if in_block(p, block)]
        routers[0].transit = routers[0].transit.without(inside)
    return forwarding(*routers)


def read_files(form: RouterFolder, folder: Path, defined: Collection[str] = ()) -> list[Read]:
    """What the files of a switch say; that others say otherwise than the first is noted.

    Raises:
        OSError: a file is not there.
        ValueError: (file, line, text) it makes no sense.
    """
    found = [_read(form, folder / name, defined) for name in form.files]
    first = found[0][0]
    for other, _ in found[1:]:
        if Path(other.file).name not in form.without_interfaces:
            agree_on_interfaces(first, other)
        agree_on_facts(first, other)
        agree(first, other)
    if form.forms and not first.faults:  # else which of the two is right is not known
        text = _without(read_exact(Path(first.file)), {line for line, _ in first.strange})
        found += [_other_form(form, folder / name, text) for name in form.forms]
    return found


def _without(text: str, lines: Collection[int]) -> str:
    """A text without these lines."""
    kept = (line for number, line in enumerate(exact_lines(text), 1) if number not in lines)
    return "\n".join(kept)


def _other_form(form: RouterFolder, file: Path, text: str) -> Read:
    """What another form of the first file says otherwise than its text."""
    router = RouterText(str(file))
    with _at_file(file):
        for line, statement, more in form.forms[file.name](text, read_exact(file)):
            (router.unknown if more else router.fault)(line, statement)
    return router, TextEngine(grammar(form.target, form.files[0]), RouterActor(router))


def _read(form: RouterFolder, file: Path, defined: Collection[str]) -> Read:
    with _at_file(file):
        return read_text(form, file.name, read_exact(file), str(file), defined)


@contextmanager
def _at_file(file: Path) -> Iterator[None]:
    """Say the file and the line of a ValueError that is about its text."""
    try:
        yield
    except JsonError as error:
        raise ValueError(str(file), error.line, str(error)) from error
    except ValueError as error:
        line, said = error.args if len(error.args) == 2 else (0, str(error))
        raise ValueError(str(file), line, said) from error


def read_text(
    form: RouterFolder, name: str, text: str, file: str = "", defined: Iterable[str] = ()
) -> Read:
    """What a text says.

    Args:
        form: the files of its system.
        name: of the file.
        text: the text.
        file: where it is.
        defined: see `read_router`.

    Raises:
        ValueError: (line, text) it is no tree, where it has to be one.
    """
    known = grammar(form.target, name)
    router = RouterText(file or name)
    actor = RouterActor(router)
    engine = TextEngine(known, actor, dict.fromkeys(defined, 0))
    if not known.tree:
        text = form.own_lines(text)
    engine.read(known.lines(text))
    router.stated = frozenset(k for k, when in known.facts if not when or when in engine.defined)
    for line, commands in actor.commands_:
        _commands(form, engine, actor, line, commands)
    actor.finish(engine)
    return router, engine


def _commands(
    form: RouterFolder, engine: TextEngine, actor: RouterActor, line: int, text: str
) -> None:
    """Read commands for what AVD and NVUE have no key for: routes between VRFs."""
    if form.without_others:
        text = re.sub(r"^!$", "", form.own_lines(text), flags=re.M)
    router = actor.router
    made = [f"vrf {name}" for name in (router.vrf, *router.stages, "default") if name]
    made += [*(f"routing6 {name}" for name in router.stages), *({"bgp"} & {*engine.defined})]
    inner = TextEngine(grammar(form.target, form.commands), actor, dict.fromkeys(made, 0))
    lines = TextLines.of(text.encode("utf-8", "replace"))
    whole = form.commands not in form.files
    inner.read(lines.numbered(np.full_like(lines.number, line)), whole=whole)
    for statement in inner.said:
        actor.unknown(line, statement)
    for table, rows in inner.routes.items():
        engine.routes.setdefault(table, RouteLines()).absorb(rows)
