"""Finds and reads the files that people collect from devices: the outputs of commands.

`device_files` finds the files in folders, `device_text` reads one, and `without_prompts` and
`behind_banner` take away what is no output. Readers of neighbour tables and of routing tables begin
with these functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from inventory.problems import InputError, Problem, file_name

LARGEST_FILE = 1 << 30
"""The most bytes of a file that is read."""
PROMPT = re.compile(
    r"""^[ \t]*(?:
        (?: ! | --\{  # a comment, SR Linux
          | (?:\([^\s()]*\)\ ?)?[^\s{}\[\]"',]*[#>$]  # most systems, also (venv) u@h:~$
          | \[[^\]\s"{},]+\ [^\]"{},]*\]\ ?[#$%>]  # [root@n0 ~]#
          | [^\s{}\[\]"',@]+@[^\s{}\[\]"',@]+(?:\ [^\s{}"']+)?\ ?%  # u@h ~ %
        ).*
        | \{(?:master|backup|primary|secondary|linecard)[^}"\n]*\}[ \t]*$
        | \[edit[^\]"\n]*\][ \t]*$
    )""",
    re.M | re.X,
)
"""A line that is no output: a prompt, a comment, or a line of Junos such as `{master:0}`. With
`re.X`, a blank in the expression is written with a backslash, and `#` begins a comment."""
JSON_START = re.compile(r"^[ \t]*(?=\{\s*[\"}]|\[\s*[\]{\[\"])", re.M)
"""A position where JSON may begin: the first character of a line such as `{"interfaces": …` or
`[{"dst":`, behind blanks."""
JSON_FRAGMENT = re.compile(r"""\{\s*"|\[\s*[{"]|[{\[]\s*$|^\s*(?:[}\]"]|\S*"\s*:)""", re.M)
"""A fragment of JSON, such as `"mtu": 9000` or a line `},`. A text with a fragment, but without a
beginning of JSON, is JSON whose first lines are missing. A text without a fragment is a banner."""
REFUSAL = re.compile(
    r"^[ \t]*(?:%|error\b|syntax error|invalid |.*(?:command not found|no such file"
    r"|permission denied|unknown command|invalid (?:input|command|token))).*",
    re.M | re.I,
)
"""A line in which a device refuses a command, such as `% Invalid input at '^' marker.`."""


@dataclass(frozen=True, slots=True)
class DeviceFile:
    """A file that was collected from a device."""

    path: Path
    """The path of the file."""
    folders: tuple[str, ...] = ()
    """The folders between the user's folder and the file, the outermost first.

    Ansible's `fetch` writes `FOLDER/n0/tmp/lldp.json`: there the outermost folder names the device.
    """


def device_files(
    paths: Iterable[Path], contents: str, problems: list[Problem]
) -> Iterator[DeviceFile]:
    """Yield the files among some paths, and all files in folders among them, at any depth.

    Files and folders whose names begin with a dot are left out.

    Args:
        paths: files and folders.
        contents: the contents of the files in words, for messages.
        problems: gets paths that do not exist, and folders without a file.
    """
    for path in paths:
        if not path.is_dir():
            if path.exists():
                yield DeviceFile(path)
            else:
                required = f"a file or folder of {contents}"
                problems.append(Problem(required, "no such file or folder", "", file_name(path)))
            continue
        inside = sorted(
            file
            for file in path.rglob("*")
            if file.is_file() and not any(n.startswith(".") for n in file.relative_to(path).parts)
        )
        if not inside:
            problems.append(
                Problem(f"a folder of {contents}", "no file in it", "", file_name(path))
            )
        for file in inside:
            yield DeviceFile(file, file.relative_to(path).parts[:-1])


def device_text(path: Path) -> str:
    """The text of a file.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    file = file_name(path)
    required = "a readable text file"
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError.of(required, "more than 1 GiB", "split it", file)
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "bytes that are not UTF-8"
        raise InputError.of(required, reason or str(error), "", file) from None


def without_prompts(text: str) -> str:
    """A text from a terminal, with empty lines in the place of prompts and comments.

    A text of prompts alone stays as it is, so that it is not taken for an empty table.
    """
    outputs = PROMPT.sub("", text)
    return outputs if outputs.strip() else text


def behind_banner(text: str, position: int) -> int:
    """The position where the next JSON begins, behind a banner or words of a shell.

    Args:
        text: the outputs.
        position: where the banner may begin.

    Returns:
        `position` itself, if JSON without its first lines is there; else the position where JSON
        begins; the end of the text if none follows.
    """
    json_start = JSON_START.search(text, position)
    end_of_banner = json_start.end() if json_start else len(text)
    is_fragment = JSON_FRAGMENT.search(text[position:end_of_banner]) is not None
    return position if is_fragment else end_of_banner
