"""The end of a process after Ctrl-C; imports nothing, as the first import may be interrupted."""

from __future__ import annotations

import sys
from typing import NoReturn


def end_interrupted() -> NoReturn:
    """Say so in one line and leave with code 130.

    `python -m` would die of SIGINT instead where the exec of a text was interrupted, as dataclasses
    do when they are imported; another exec of a text makes it forget that.
    """
    exec("")  # noqa: S102
    print("interrupted", file=sys.stderr)
    sys.exit(130)
