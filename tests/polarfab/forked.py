"""The command line in processes of their own, which do not pay for its imports.

A process imports polarfab once. Each call runs in a copy of it, so calls share no state: packages
that are installed for a call, caches, and what the call imports are gone with its process. A call
has the environment that its test has, and an empty standard input.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
OFTEN = (
    "compilers.pipeline",
    "compilers.proof.explanation",
    "compilers.proof.verification",
    "compilers.readers.grammar.text_engine",
    "compilers.readers.openflow.ovs_reader",
    "compilers.tables.folders.build_folder",
    "compilers.targets.openflow.flow_tables",
    "polarfab.cli",
    "polarfab.fabric",
    "polarfab.measures",
)
"""Modules that most verbs import when they are called."""
PATIENCE = 300
"""Seconds after which a call that hangs is killed: its code is -14, of SIGALRM."""


class CommandLine:
    """The command line of a checkout."""

    def __init__(self, checkout: Path = ROOT) -> None:
        """Start the process that is copied."""
        self._checkout = checkout
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(checkout)},
            cwd=checkout,
            text=True,
        )

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def __call__(
        self,
        *words: object,
        sites: tuple[Path, ...] = (),
        cwd: Path | None = None,
        out: Path | None = None,
    ) -> tuple[int, str, str]:
        """Exit code, output and errors of a call.

        Args:
            words: the words after `polarfab`.
            sites: folders with packages that are installed for this call.
            cwd: the working directory.
            out: where standard output is appended; nothing: it is returned.
        """
        with TemporaryDirectory() as folder:
            outputs = out or Path(folder, "out"), Path(folder, "err")
            path = os.pathsep.join(map(str, (*sites, self._checkout)))
            call = {
                "words": [*map(str, words)],
                "sites": [*map(str, sites)],
                "outputs": [*map(str, outputs)],
                "cwd": str(cwd or Path.cwd()),
                "environment": os.environ | {"PYTHONPATH": path},
            }
            print(json.dumps(call), file=self._process.stdin, flush=True)
            code = int(self._process.stdout.readline())  # type: ignore[union-attr]
            return code, "" if out else outputs[0].read_text(), outputs[1].read_text()


def serve() -> None:
    """Run a copy of this process for each line of standard input, and print its exit code."""
    del sys.path[0]  # the folder of this file
    from polarfab.verb_list import SECTIONS, verb

    for section in SECTIONS:
        for name in section.verbs:
            verb(name)
    for name in OFTEN:
        import_module(name)
    gc.freeze()  # so that looking for garbage touches no memory that copies share
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            run(json.loads(line))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def run(call: dict[str, Any]) -> None:
    """Run the command line in this process, and end it."""
    from polarfab.__main__ import main

    signal.alarm(PATIENCE)
    os.environ.clear()
    os.environ.update(call["environment"])
    os.chdir(call["cwd"])
    sys.path[:0] = call["sites"]
    sys.argv = ["polarfab", *call["words"]]
    sys.stdin.close()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin = os.fdopen(0)
    for number, file in enumerate(call["outputs"], 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    code = 1
    try:
        main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
