"""The lines of a plan that write a file: `write /etc/polarfab/load.sh`.

Most lines of a push are commands that the shell or another program of the device reads. A line that
begins with `write` is none: when the push comes to it, the device class puts the rendered file at
the path (`DeviceShell.put`). So a dry run prints the files in their place among the commands.
"""

from __future__ import annotations

WRITE = "write "
"""How such a line begins."""


def write_line(path: str) -> str:
    """The line that writes the rendered file to a path on the device."""
    return f"{WRITE}{path}"


def is_write_line(line: str) -> bool:
    """Whether a line writes a file."""
    return line.startswith(WRITE)


def written_name(line: str) -> str:
    """The name of the file that a line writes.

    >>> written_name("write /etc/polarfab/load.sh")
    'load.sh'
    """
    return line.rpartition("/")[2]
