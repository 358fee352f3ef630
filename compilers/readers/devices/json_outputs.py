"""Reader of files with the JSON outputs of several commands, one after the other.

What comes in is a text that was copied from a terminal. What goes out are the JSON values in it.
The readers of neighbour tables and of routing tables call `json_outputs`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from compilers.readers.devices.device_files import REFUSAL, behind_banner, without_prompts
from inventory.problems import InputError, shown

BLANKS = re.compile(r"\s*")
"""Blanks and line ends."""
OLD_IPROUTE2 = re.compile(
    r'\{\s*"(?:local|broadcast|multicast|anycast|unreachable|blackhole|prohibit|throw)"\s*,'
)
"""The type of a route as iproute2 before 5.1 prints it into JSON: a value without a key."""
_decoder = json.JSONDecoder()
"""Reads one output, and tells the position behind it."""


def json_outputs(text: str, path: str = "") -> Iterator[Any]:
    """Yield the outputs in a text; empty ones, such as a table without routes, are left out.

    Args:
        text: the text as it was copied from a terminal, with prompts and banners.
        path: the path of the file, for messages.

    Raises:
        InputError: the text is not JSON.

    >>> list(json_outputs('leaf-1# show routes | json\\n{"a": 1}\\n{}'))
    [{'a': 1}]
    """
    text = without_prompts(text)
    position = _next_output(text, 0, path)
    if position == len(text) and text.strip():
        first_line = next(line.strip() for line in text.splitlines() if line.strip())
        raise InputError.of("JSON", f"a text: {shown(first_line)}", "", path)
    while position < len(text):
        try:
            document, position = _decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise _no_json(text, error, path) from None
        except (RecursionError, ValueError):  # `int` refuses numbers of thousands of digits
            reason = "numbers or nesting beyond measure"
            raise InputError.of("JSON", reason, "", path) from None
        if document:
            yield document
        position = _next_output(text, position, path)


def unwrapped(output: Any) -> Any:
    """An output without the JSON-RPC envelope of EOS's eAPI or NX-OS's NX-API."""
    if not isinstance(output, dict) or not {"jsonrpc", "result"} <= output.keys():
        return output
    result = output["result"]
    if isinstance(result, list) and len(result) == 1:
        (result,) = result
    return result.get("body", result) if isinstance(result, dict) else result


def _next_output(text: str, position: int, path: str) -> int:
    """The position where the next output begins; the end of the text if there is none.

    Args:
        text: the text with all outputs.
        position: the position behind the output before.
        path: the path of the file, for messages.

    Raises:
        InputError: a device refuses a command before the next output.
    """
    start = behind_banner(text, position)
    if refusal := REFUSAL.search(text, position, start):
        reason = f"what a device says: {shown(refusal[0].strip())}"
        line = text.count("\n", 0, refusal.start()) + 1
        raise InputError.of("JSON", reason, "collect it again", path, line)
    return _behind_blanks(text, start)


def _no_json(text: str, error: json.JSONDecodeError, path: str) -> InputError:
    """The error that a text is no JSON, with its known cause if there is one."""
    if OLD_IPROUTE2.search(text):
        todo = (
            "collect it with iproute2 5.1 or later (in a container on the host's network), or with "
            "`vtysh` where FRR runs"
        )
        return InputError.of("JSON", "that of iproute2 before 5.1, which is none", todo, path)
    reason = f"{error.msg} in column {error.colno}"
    return InputError.of("JSON", reason, "", path, error.lineno)


def _behind_blanks(text: str, position: int) -> int:
    """The position behind the blanks and line ends at a position."""
    blanks = BLANKS.match(text, position)
    return blanks.end() if blanks else position
