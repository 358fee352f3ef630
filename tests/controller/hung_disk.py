"""A disk that hangs at times: whoever changes it waits until it answers, as on one that is frozen.

As a program it is the command line on a machine with such a disk. argv: a file while which is there
no change is ever done, the folder that is on the disk, and the words of the command.
"""

from __future__ import annotations

import builtins
import ctypes
import io
import os
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

CHANGES = "fsync", "ftruncate", "rename", "replace", "mkdir", "rmdir", "unlink"
SYSTEM = "syncfs", "renameat2"


def late(wait, change, where, *arguments, **named):
    """Change the disk when it answers."""
    wait(where)
    return change(where, *arguments, **named)


def late_open(wait, file, mode="r", *arguments, opened=open, **named):
    """Open a file; to write to it is a change."""
    if {*mode} & {*"wax+"}:
        wait(file)
    return opened(file, mode, *arguments, **named)


def late_library(wait, *arguments, library=ctypes.CDLL, **named):
    """The C library, whose changes wait as well."""
    functions = library(*arguments, **named)

    def changed(function, *values):
        wait(values[1] if len(values) > 1 else values[0])
        return function(*values)

    changes = {name: partial(changed, getattr(functions, name)) for name in SYSTEM}
    return SimpleNamespace(**changes)


def is_on(disk, where):
    """Whether a path or a descriptor is on the disk: in this folder."""
    if isinstance(where, int):
        where = Path(f"/proc/self/fd/{where}").readlink()
    return Path(os.fsdecode(where)).is_relative_to(disk)


def changes(disk, hang):
    """What changes the disk, as (where it is, its name, the same after `hang()`)."""

    def wait(where):
        if is_on(disk, where):
            hang()

    for name in CHANGES:
        yield os, name, partial(late, wait, getattr(os, name))
    yield builtins, "open", partial(late_open, wait)
    yield io, "open", partial(late_open, wait)
    yield ctypes, "CDLL", partial(late_library, wait)


def main():
    """The command line."""
    hangs, disk = Path(sys.argv.pop(1)), Path(sys.argv.pop(1))

    def hang():
        while hangs.exists():
            time.sleep(0.02)

    from polarfab import cli

    for where, name, function in changes(disk, hang):
        setattr(where, name, function)
    cli.main()


if __name__ == "__main__":
    main()
