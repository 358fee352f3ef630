"""Ends the process after Ctrl-C or SIGTERM.

It imports almost nothing, because Ctrl-C may come while the first modules are imported.
"""

from __future__ import annotations

import sys
from typing import NoReturn


def end_interrupted(error: BaseException | None = None) -> NoReturn:
    """Print `interrupted` and the notes of the exception in one line, and exit with code 130.

    The definition of a dataclass runs generated code by `exec`. If Ctrl-C interrupts such an
    `exec`, Python remembers that, and ends `python -m` by SIGINT, with another exit code than 130.
    Python forgets it at the next `exec`.
    """
    exec("")  # noqa: S102 - does nothing but make Python forget an interrupted one
    print("; ".join(["interrupted", *notes(error)]), file=sys.stderr)
    sys.exit(130)


def notes(error: BaseException | None) -> list[str]:
    """The notes of an exception and of its cause, such as the files that it has left."""
    if error is None:
        return []
    return [*getattr(error, "__notes__", []), *getattr(error.__cause__, "__notes__", [])]
