"""Files and folders of neighbour tables as facts, whatever tool they are from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from compilers.readers.devices import ibnetdiscover, neighbour_table
from compilers.readers.devices.device_files import device_files, device_text, without_prompts
from compilers.readers.devices.neighbour_facts import Facts, Seen, Source, mapping
from compilers.targets.eos import neighbours as eos_lldp
from compilers.targets.junos import neighbours as junos_lldp
from compilers.targets.linux import neighbours as lldpctl
from compilers.targets.nxos import neighbours as nxos_lldp
from compilers.targets.ovs import neighbours as openflow_links
from compilers.targets.sonic import neighbours as sonic_lldp
from compilers.targets.srlinux import neighbours as srlinux_lldp
from inventory.problems import InputError, Problem, few, shown

NEIGHBOUR_FORMATS: dict[str, ModuleType] = {
    "lldpctl": lldpctl,
    "sonic": sonic_lldp,
    "eos": eos_lldp,
    "srlinux": srlinux_lldp,
    "nxos": nxos_lldp,
    "junos": junos_lldp,
    "ibnetdiscover": ibnetdiscover,
    "openflow": openflow_links,
    "csv": neighbour_table,
}
FORMATS_IN_WORDS = {
    "lldpctl": lldpctl.LLDPCTL,
    "sonic": sonic_lldp.SONIC_LLDP,
    "eos": eos_lldp.EOS_LLDP,
    "srlinux": srlinux_lldp.SRLINUX_LLDP,
    "nxos": nxos_lldp.NXOS_LLDP,
    "junos": junos_lldp.JUNOS_LLDP,
    "ibnetdiscover": ibnetdiscover.IBNETDISCOVER,
    "openflow": openflow_links.LINK_LIST,
    "csv": neighbour_table.NEIGHBOUR_TABLE,
}
OF_ONE_NODE = ("lldpctl", "sonic", "eos", "srlinux", "nxos", "junos")


def read_facts(paths: Iterable[Path], form: str | None = None) -> Facts:
    """The facts in files, and in the files of folders.

    Where a table is of one node, the file's name without its last suffix names the node; a JSON
    file may hold many, as a mapping from node to table.

    Args:
        paths: files and folders.
        form: one of NEIGHBOUR_FORMATS; without it the content tells.

    Raises:
        InputError: every file that cannot be read or is of no known form.
    """
    seen: list[Seen] = []
    reporters: set[tuple[str, ...]] = set()
    forms: dict[tuple[str, ...], str] = {}
    problems: list[Problem] = []
    for path in device_files(paths, "neighbour tables", problems):
        try:
            for source in _sources(path, form):
                name = _form(source, form)
                found = list(NEIGHBOUR_FORMATS[name].read(source))
                seen += found
                if name in OF_ONE_NODE:
                    forms[(source.node,)] = name
                    reporters.add((source.node,))
                else:
                    reporters |= {fact.near.nodes for fact in found}
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(few(problems))
    return Facts(tuple(seen), frozenset(reporters), tuple(forms.items()))


def _sources(path: Path, form: str | None) -> list[Source]:
    """The tables in a file: one, or in JSON by the names of nodes."""
    file = str(path) if str(path).isprintable() else repr(str(path))
    text = device_text(path)
    whole = Source(file, text, path.stem, _json(text, file))
    inner = mapping(whole.data)
    if inner and not _known(whole, form):
        parts = [Source(file, "", str(node), data) for node, data in inner.items()]
        if all(_known(part, form) for part in parts):
            return parts
    return [whole]


def _json(text: str, file: str) -> object:
    text = without_prompts(text)
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem = Problem("JSON", f"{error.msg} in column {error.colno}", "", file, error.lineno)
        raise InputError(problem) from None
    except (RecursionError, ValueError):
        raise InputError.of("JSON", "numbers or nesting beyond measure", "", file) from None


def _known(source: Source, form: str | None) -> bool:
    readers = [NEIGHBOUR_FORMATS[form]] if form else NEIGHBOUR_FORMATS.values()
    return any(reader.fits(source) for reader in readers)


def _form(source: Source, form: str | None) -> str:
    names = [form] if form else list(NEIGHBOUR_FORMATS)
    for name in names:
        if NEIGHBOUR_FORMATS[name].fits(source):
            return name
    any_of = f"a neighbour table ({', '.join(NEIGHBOUR_FORMATS)})"
    required = FORMATS_IN_WORDS[form] if form else any_of
    other = next((name for name, reader in NEIGHBOUR_FORMATS.items() if reader.fits(source)), "")
    first = next((line.strip() for line in source.text.splitlines() if line.strip()), "")
    given = f"what looks like {other}" if other else shown(first or "an empty file")
    todo = f"leave `format` out, or say `format {other}`" if other else ""
    raise source.wrong(required, given, todo)
