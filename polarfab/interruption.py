"""Ends the process after Ctrl-C or SIGTERM.

It imports almost nothing, because Ctrl-C may come while the first modules are imported.
"""

from __future__ import annotations

import sys
from typing import NoReturn


def end_interrupted(error: BaseException | None = None) -> NoReturn:
    """Print `interrupted` and the notes of the exception in one line, and exit with code 130.

    If Ctrl-C interrupts the exec of a text, which dataclasses use when they are defined, `python
    -m` ends by SIGINT itself, with another exit code. Another exec resets that.
    """
    exec("")  # noqa: S102
    print("; ".join(["interrupted", *notes(error)]), file=sys.stderr)
    sys.exit(130)


def notes(error: BaseException | None) -> list[str]:
    """The notes of an exception and of its cause, such as the files that it has left."""
    if error is None:
        return []
    return [*getattr(error, "__notes__", []), *getattr(error.__cause__, "__notes__", [])]
