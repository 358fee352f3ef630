"""Readers of the folders of routers whose links have addresses, by the templates' grammars.

Where a system gets the same in two files, the second has to say what the first says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np

from compilers.readers.emitted_forwarding import EmittedSwitch
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

FILES = {
    "eos": ("eos.cfg", "avd.json"),
    "nxos": ("nxos.cfg",),
    "junos": ("junos.set",),
    "srlinux": ("srlinux.json",),
    "sonic": ("config_db.json", "frr.conf"),
    "nvue": ("startup.yaml",),
}
"""By target; the first says everything."""
WITHOUT_INTERFACES = "frr.conf"
COMMANDS = {"eos": "eos.cfg", "nvue": "shares"}
"""The language of AVD's `eos_cli`, and of NVUE's snippet."""
LOSSLESS, PRIORITIES = "lossless", "config_db.json"
"""Defined where priorities are lossless, and the file whose tables of these are read elsewhere."""
QOS = re.compile(
    r"qos (map|profile) |(ip|ipv6) access-list lossless-|class-map type qos |policy-map type qual"
)
"""How the first line of a section begins that is about priorities."""
SERVICE = "   service-profile "
Read = tuple[RouterText, TextEngine]


def read_router(target: str, folder: Path, defined: Collection[str] = ()) -> EmittedSwitch:
    """A folder of a switch with static routes: statements about BGP have no place there.

    Args:
        target: one of FILES.
        folder: of the switch.
        defined: what its grammars take for defined: `lossless` or `segments`, `hwsku` and
            `hwsku NAME`, of SONiC.

    Raises:
        OSError: a file is not there.
        ValueError: (file, line, text) it makes no sense.
    """
    found = read_files(target, folder, defined)
    for router, engine in found:
        if Path(router.file).name != PRIORITIES:
            router.strange = sorted([*router.strange, *((n, t) for t, n in engine.said.items())])
    routers = [router for router, _ in found]
    if block := routers[0].segments:
        inside = [p for p in routers[0].transit.prefixes if in_block(p, block)]
        routers[0].transit = routers[0].transit.without(inside)
    return forwarding(*routers)


def read_files(target: str, folder: Path, defined: Collection[str] = ()) -> list[Read]:
    """What the files of a switch say; that others say otherwise than the first is noted.

    Raises:
        OSError: a file is not there.
        ValueError: (file, line, text) it makes no sense.
    """
    found = [_read(target, folder / name, defined) for name in FILES[target]]
    first = found[0][0]
    for other, _ in found[1:]:
        if Path(other.file).name != WITHOUT_INTERFACES:
            agree_on_interfaces(first, other)
        agree_on_facts(first, other)
        agree(first, other)
    return found


def _read(target: str, file: Path, defined: Collection[str]) -> Read:
    try:
        text = file.read_text()
    except UnicodeDecodeError as error:
        raise ValueError(str(file), 0, "no text in UTF-8") from error
    try:
        return read_text(target, file.name, text, str(file), defined)
    except JsonError as error:
        raise ValueError(str(file), error.line, str(error)) from error
    except ValueError as error:
        line, said = error.args if len(error.args) == 2 else (0, str(error))
        raise ValueError(str(file), line, said) from error


def read_text(
    target: str, name: str, text: str, file: str = "", defined: Iterable[str] = ()
) -> Read:
    """What a text says.

    Args:
        target: of whose files it is one.
        name: of the file.
        text: the text.
        file: where it is.
        defined: see `read_router`.

    Raises:
        ValueError: (line, text) it is no tree, where it has to be one.
    """
    known = grammar(target, name)
    router = RouterText(file or name)
    actor = RouterActor(router)
    engine = TextEngine(known, actor, dict.fromkeys(defined, 0))
    if LOSSLESS in engine.defined and not known.tree:
        text = without_priorities(text)
    engine.read(known.lines(text))
    router.stated = frozenset(k for k, when in known.facts if not when or when in engine.defined)
    for line, commands in actor.commands_:
        _commands(target, engine, actor, line, commands)
    actor.finish(engine)
    return router, engine


def _commands(target: str, engine: TextEngine, actor: RouterActor, line: int, text: str) -> None:
    """Read commands for what AVD and NVUE have no key for: routes between VRFs."""
    if LOSSLESS in engine.defined:
        text = re.sub(r"^!$", "", without_priorities(text), flags=re.M)
    router = actor.router
    made = [f"vrf {name}" for name in (router.vrf, *router.stages, "default") if name]
    made += [*(f"routing6 {name}" for name in router.stages), *({"bgp"} & {*engine.defined})]
    language = COMMANDS[target]
    inner = TextEngine(grammar(target, language), actor, dict.fromkeys(made, 0))
    lines = TextLines.of(text.encode())
    whole = language not in FILES[target]
    inner.read(lines.numbered(np.full_like(lines.number, line)), whole=whole)
    for statement in inner.said:
        actor.unknown(line, statement)
    for table, rows in inner.routes.items():
        engine.routes.setdefault(table, RouteLines()).absorb(rows)


def without_priorities(text: str) -> str:
    """A configuration with comments in the place of lines about priorities."""
    lines, inside = text.splitlines(), False
    for number, line in enumerate(lines):
        if line[:1] != " ":
            inside = QOS.match(line) is not None
        if inside or line.startswith(SERVICE):
            lines[number] = "!"
    return "\n".join(lines) + "\n"
