"""How much there is of polarfab: lines, files, verbs, options, words (`make figures`).

    python -m manual.size           print the figures next to those that were committed last
    python -m manual.size --write   commit today's figures, in `size.json` next to this file

A product has one owner as long as one person can read it: the budgets are outcomes to work
towards, no limits that fail. `naming` counts the product files that name a balance or a family.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from compilers.spec.balances import own_balances
from compilers.topology.families import known_families
from polarfab.cli import cli

ROOT = Path(__file__).resolve().parent.parent
KEPT = Path(__file__).with_name("size.json")
ROOMS = ("compilers", "extensions", "controller", "mininet_scenarios", "polarfab", "inventory")
BUDGETS = {
    "lines compilers": 34_000,
    "lines extensions": 20_000,
    "lines controller": 10_500,
    "lines mininet_scenarios": 8_000,
    "lines polarfab": 5_500,
    "lines tests": 50_000,
    "verbs": 25,
    "pages": 45,
    "words": 55_000,
}


def figures() -> dict[str, int]:
    """Every figure by its name, counted in the files that git tracks."""
    listing = subprocess.check_output(["git", "ls-files"], text=True, cwd=ROOT)
    files = [path for name in listing.splitlines() if (path := ROOT / name).is_file()]
    python = {path: path.read_text() for path in files if path.suffix == ".py"}
    counted: Counter[str] = Counter()
    for path, text in python.items():
        room = path.relative_to(ROOT).parts[0]
        if room in (*ROOMS, "tests"):
            counted[f"lines {room}"] += text.count("\n")
            counted[f"files {room}"] += 1
    verbs = commands(cli)
    takers = Counter(word for verb in verbs for word in options(verb))
    counted["verbs"] = len(cli.list_commands(click.Context(cli)))
    counted["verbs, groups one by one"] = len(verbs)
    counted["options"] = len(takers)
    counted["options of one verb"] = list(takers.values()).count(1)
    pages = [path for path in files if path.suffix == ".md" and path.parts[-2] != "golden"]
    pages = [path for path in pages if path.is_relative_to(ROOT / "docs")]
    counted["pages"] = len(pages)
    counted["words"] = sum(len(path.read_text().split()) for path in pages)
    product = [text for path, text in python.items() if path.relative_to(ROOT).parts[0] in ROOMS]
    for kind, names in (("balance", own_balances()), ("family", known_families())):
        for name in names:
            literal = re.compile(rf"\b{name.replace('-', '[-_]')}\b", re.IGNORECASE)
            counted[f"naming {kind} {name}"] = sum(bool(literal.search(text)) for text in product)
    return dict(counted)


def options(command: click.Command) -> list[str]:
    """The options of a verb by their long names."""
    given = [option for option in command.params if isinstance(option, click.Option)]
    return [max(option.opts, key=len) for option in given]


def commands(group: click.Group) -> list[click.Command]:
    """All verbs, those of groups of verbs one by one."""
    context = click.Context(group)
    found: list[click.Command] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found += commands(command)
        elif command:
            found.append(command)
    return found


def show(now: dict[str, int]) -> None:
    """Print the figures, those that were committed last, and the budgets."""
    before: dict[str, int] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    table = Table("figure", *(["now", "committed", "budget"]), box=None)
    for name in {**before, **now}:
        values = (source.get(name) for source in (now, before, BUDGETS))
        table.add_row(name, *("" if value is None else f"{value:,}" for value in values))
    Console().print(table)


if __name__ == "__main__":
    counted = figures()
    show(counted)
    if "--write" in sys.argv[1:]:
        KEPT.write_text(json.dumps(counted, indent=1) + "\n")
