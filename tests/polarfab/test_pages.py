"""The commands of the README and the manual run as they stand, and print what is shown there."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.polarfab.conftest import Run
from tests.polarfab.forked import command_line
from tests.polarfab.pages import LINK, PAGES, ROOT, Command, blocks, first_wrong

COLUMNS = "100"
ELSEWHERE = "not run", "fabric"
"""How blocks are marked whose commands do not run here."""


def marked(page: Path) -> object:
    """A page as a parameter; live if one of its blocks is."""
    live = any(block.mark.startswith("live") for block in blocks(page))
    name = page.relative_to(ROOT).with_suffix("").as_posix()
    return pytest.param(page, id=name, marks=[pytest.mark.live] if live else [])


WITH_COMMANDS = [
    page
    for page in PAGES
    if any(b.language == "console" and not b.mark.startswith(ELSEWHERE) for b in blocks(page))
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader stands: a folder with nothing but the examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", COLUMNS)
    return tmp_path


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """What pages compile from examples that they do not change, once for all pages."""
    return Compiled(tmp_path_factory.mktemp("compiled"))


@dataclass
class Compiled:
    """Copies of builds of examples: each is compiled once for all pages."""

    folder: Path
    """Where they are kept."""
    printed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By spec: the folder that it was compiled into first, and what that printed."""

    def run(self, spec: str, build: str, polarfab: Run, shows: bool) -> tuple[int, str]:
        """Exit code and what `polarfab compile SPEC -o BUILD` prints.

        What is printed names the folder, so it is of use to a page that shows it with that name.
        """
        kept = self.folder / spec.replace("/", " ")
        first, printed = self.printed.get(spec, ("", ""))
        if kept.exists() and not Path(build).exists() and (first == build or not shows):
            shutil.copytree(kept, build, symlinks=True)
            return 0, printed
        code, out, err = polarfab("compile", spec, "-o", build)
        if not code and not kept.exists():
            shutil.copytree(build, kept, symlinks=True)
            self.printed[spec] = build, out + err
        return code, out + err


def run(command: Command, polarfab: Run, folder: Path, compiled: Compiled) -> tuple[int, str]:
    """Exit code and what is printed, errors last; polarfab runs in this process."""
    words = shlex.split(command.words.replace("$PWD", str(Path.cwd())), comments=True)
    match words:
        case ["polarfab", "compile", spec, "-o", build] if spec.startswith("examples/"):
            return compiled.run(spec, build, polarfab, shows=bool(command.shown))
        case ["polarfab", *arguments, (">" | "2>") as stream, file] if is_plain(arguments):
            code, out, err = polarfab(*arguments)
            Path(file).write_text(out if stream == ">" else err)
            return code, err if stream == ">" else out
        case ["polarfab", *arguments] if is_plain(arguments):
            code, out, err = polarfab(*arguments)
            return code, out + err
    tools = command_line().program(folder / ".tools").parent
    path = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["/bin/sh", "-c", command.words], capture_output=True, text=True, env=os.environ | path
    )
    return done.returncode, done.stdout + done.stderr


def is_plain(words: list[str]) -> bool:
    """Whether a shell would hand over words as they are."""
    return not any("$" in word or word in {"|", ">", "&&", ";", "2>"} for word in words)


@pytest.mark.parametrize("page", [marked(page) for page in WITH_COMMANDS])
def test_the_commands_of_a_page_run(
    page: Path,
    folder: Path,
    polarfab: Run,
    compiled: Compiled,
    request: pytest.FixtureRequest,
) -> None:
    for block in blocks(page):
        if block.writes:
            file = folder / block.writes
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        if block.language != "console" or block.mark.startswith(ELSEWHERE):
            continue
        commands = list(block.commands())
        for command in commands:
            code, printed = run(command, polarfab, folder, compiled)
            last = command is commands[-1] and block.mark.startswith("exits ")
            where = f"{block.where}: $ {command.words}"
            assert code == (int(block.mark.split()[1]) if last else 0), f"{where}\n{printed}"
            lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
            wrong = first_wrong(command.shown, lines) if command.shown else None
            if wrong and request.config.getoption("--update-golden"):
                rewrite(page, command, lines)
            elif wrong:
                pytest.fail(f"{where}\nnot printed: {wrong}\nbut:\n{printed}")


def rewrite(page: Path, command: Command, lines: list[str]) -> None:
    """Show below a command what it prints now, all of it."""
    old, new = ("\n".join([command.words, *part, ""]) for part in (command.shown, lines))
    page.write_text(page.read_text().replace(old, new))


def test_links_lead_to_files_of_a_clone() -> None:
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in LINK.findall(page.read_text())
        if not (page.parent / target).exists()
    ]
    assert dead == []


def test_every_block_says_what_it_is() -> None:
    every = [block for page in PAGES for block in blocks(page)]
    assert [block.where for block in every if not block.language] == []


def test_commands_stand_in_console_blocks() -> None:
    stray = [
        f"{block.where}: {line}"
        for page in PAGES
        for block in blocks(page)
        if block.language != "console"
        for line in block.text.splitlines()
        if line.startswith(("$ ", "polarfab "))
    ]
    assert stray == []


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    every = [block for page in PAGES for block in blocks(page) if block.language == "console"]
    shown = [block for block in every if block.mark.startswith("not run")]
    assert [block.where for block in shown if len(block.mark) < len("not run: it is")] == []
    assert len(shown) * 3 < len(every), f"{len(shown)} of {len(every)}"
