"""Completion: what real shells make of a Tab."""

import os
import pty
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.polarfab.forked import command_line

ROOT = Path(__file__).parents[2]
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(polarfab --completion bash)"'),
    "zsh": (
        ["zsh", "--no-rcs", "-i"],
        'autoload -U compinit; compinit -D; eval "$(polarfab --completion zsh)"',
    ),
    "fish": (["fish", "--no-config", "--interactive"], "polarfab --completion fish | source"),
}
TYPED = {
    "polarfab verif": "polarfab verify",
    "polarfab verify la": "polarfab verify lab-build",
    "polarfab verify lab-build --emi": "polarfab verify lab-build --emitted",
    "polarfab controller lab-build --framework os": (
        "polarfab controller lab-build --framework os-ken"
    ),
    "polarfab emulate first-light-q7": "polarfab emulate first-light-q7",
}
START, END = "\x01", "\x05"
"""Ctrl-A and Ctrl-E."""


@pytest.fixture
def desk(tmp_path) -> Path:
    """A folder with a build and one that is none, and polarfab on the path."""
    for name in ("lab-build", "labels"):
        (tmp_path / name).mkdir()
    (tmp_path / "lab-build/manifest.json").write_text("{}")
    command_line().program(tmp_path / "bin")
    return tmp_path


class Terminal:
    """A shell in a terminal of its own, whose lines are told by the files that they write."""

    def __init__(self, command: list[str], desk: Path) -> None:
        self.ours, theirs = pty.openpty()
        os.set_blocking(self.ours, False)
        self.seen = b""
        variables = {
            "PATH": f"{desk}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(desk),
            "TERM": "xterm",
        }
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command],
            cwd=desk,
            env=variables,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def does(self, line: str, file: Path) -> str:
        """Type a line, and wait for what it writes into a file."""
        os.write(self.ours, f"{line}\n".encode())
        end = time.monotonic() + 30
        while not (file.exists() and (text := file.read_text())):
            with suppress(BlockingIOError):
                self.seen += os.read(self.ours, 65536)
            assert time.monotonic() < end, f"{line!r}\n{self.seen.decode(errors='replace')}"
            time.sleep(0.02)
        return text

    def ends(self) -> None:
        os.close(self.ours)
        self.process.kill()
        self.process.wait()


@pytest.mark.shells
@pytest.mark.parametrize("shell", SHELLS)
def test_a_tab_in_a_real_shell(desk, shell):
    command, begin = SHELLS[shell]
    terminal = Terminal(command, desk)
    try:
        terminal.does(f"{begin}; echo yes > begun", desk / "begun")
        for number, (text, completed) in enumerate(TYPED.items()):
            # Completed, the line becomes what `echo` writes.
            line = f"{text}\t{START}echo {END}> {number}"
            assert terminal.does(line, desk / str(number)).split() == completed.split()
    finally:
        terminal.ends()


TOLD = {
    "polarfab co": ["compile", "controller"],
    "polarfab --v": ["--version"],
    "polarfab verify la": ["lab-build"],
    "polarfab verify x": ["dir,x"],
    "polarfab expand x": ["file,x"],
    "polarfab plan lab-build --from la": ["lab-build"],
    "polarfab push lab-build --from la": ["lab-build"],
    "polarfab emulate fabric-q": ["fabric-q16", "fabric-q3", "fabric-q31"],
    "polarfab emulate lab": ["file,lab"],
    "polarfab verify lab-build --failures nonsense --qui": ["--quick", "--quiet"],
}
ASK = """import os, sys
from polarfab.cli import main
os.environ["_POLARFAB_COMPLETE"] = "bash_complete"
for words in sys.argv[1:]:
    os.environ |= {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    try:
        main()
    except SystemExit:
        print(flush=True)
print(*sys.modules)
"""


NAMES = {
    "polarfab init lab po": ["polarfly", "polarstar"],
    "polarfab export po": ["polarfly", "polarstar"],
    "polarfab draw l": ["lab-build"],
    "polarfab draw polarstar --supernode pa": ["paley"],
    "polarfab draw lab-build --pattern to": ["tornado"],
}


def told(desk: Path, asked: dict[str, list[str]]) -> tuple[dict[str, list[str]], str]:
    """What a shell is told, and the modules that this imports.

    In a process of its own: verbs are not the same when they have completed.
    """
    done = subprocess.run(
        [sys.executable, "-c", ASK, *asked],
        cwd=desk,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    *lines, imported = done.stdout.replace("plain,", "").split("\n\n")
    return {words: line.split() for words, line in zip(asked, lines, strict=True)}, imported


def test_names_that_the_compiler_knows(desk):
    assert told(desk, NAMES)[0] == NAMES


def test_what_a_shell_is_told_and_what_that_imports(desk):
    found, imported = told(desk, TOLD)
    assert found == TOLD
    heavy = {"numpy", "pydantic", "yaml", "rich", "jinja2"}
    assert heavy & {*imported.split()} == set()
