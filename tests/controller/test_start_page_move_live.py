"""What the start page says of running a fabric, on switches: a controller, a move."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controller.makers import BRIDGES, SWITCHES, connect, rows
from tests.polarfab.forked import command_line
from tests.waiting import until

PAGE = Path(__file__).parents[2] / "docs/index.md"
pytestmark = pytest.mark.live


def commands():
    """The lines of the block, without comments."""
    block = re.search(r"```console not run: it needs switches\n(.*?)```", PAGE.read_text(), re.S)
    return [line.removeprefix("$ ").split("  #")[0].strip() for line in block[1].splitlines()]


def test_the_start_page_moves_a_running_fabric(switches, builds, tmp_path):
    for name, build in zip(("build", "protected"), builds, strict=True):
        shutil.copytree(build, tmp_path / name)
    secret, serve, *others = commands()
    serve = re.sub("^polarfab ", f"{shlex.quote(sys.executable)} -m polarfab ", serve)
    tools = command_line().program(tmp_path / "tools").parent
    path = {"PATH": f"{tools}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", secret], cwd=tmp_path, check=True)
    controller = subprocess.Popen(["sh", "-c", f"exec {serve}"], cwd=tmp_path)
    try:
        connect(switches, 6653, *list(BRIDGES)[:SWITCHES])

        def run(words):
            return subprocess.run(
                ["sh", "-c", words],
                cwd=tmp_path,
                env=os.environ | path,
                capture_output=True,
                text=True,
            )

        status, *rest = others
        until(lambda: run(status).returncode == 0, "a complete fabric")
        before = rows(switches, "s0")
        for words in rest:
            done = run(words)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
        assert rows(switches, "s0") != before  # the build marker names the other build
    finally:
        controller.terminate()
        assert controller.wait(20) == 0
