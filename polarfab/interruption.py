"""The end of a process after Ctrl-C or SIGTERM; imports next to nothing, as the first import may be
interrupted.
"""

from __future__ import annotations

import sys
from typing import NoReturn


def end_interrupted(error: BaseException | None = None) -> NoReturn:
    """Say so in one line, with the notes of the exception, and leave with code 130.

    `python -m` would die of SIGINT instead where the exec of a text was interrupted, as dataclasses
    do when they are imported; another exec of a text makes it forget that.
    """
    exec("")  # noqa: S102
    print("; ".join(["interrupted", *notes(error)]), file=sys.stderr)
    sys.exit(130)


def notes(error: BaseException | None) -> list[str]:
    """What was noted on an exception, or on the one that it came from: what it has left."""
    lists = [getattr(one, "__notes__", []) for one in (error, error and error.__cause__)]
    return [note for listed in lists for note in listed]
