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
"""Reads one output, and says where it ends."""


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
    place = _next_output(text, 0, path)
    if place == len(text) and text.strip():
        first = next(line.strip() for line in text.splitlines() if line.strip())
        raise InputError.of("JSON", f"a text: {shown(first)}", "", path)
    while place < len(text):
        try:
            document, place = _decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            raise _no_json(text, error, path) from None
        except (RecursionError, ValueError):
            reason = "numbers or nesting beyond measure"
            raise InputError.of("JSON", reason, "", path) from None
        if document:
            yield document
        place = _next_output(text, place, path)


def unwrapped(output: Any) -> Any:
    """An output without the JSON-RPC envelope of EOS's eAPI or NX-OS's NX-API."""
    if not isinstance(output, dict) or not {"jsonrpc", "result"} <= output.keys():
        return output
    result = output["result"]
    if isinstance(result, list) and len(result) == 1:
        (result,) = result
    return result.get("body", result) if isinstance(result, dict) else result


def _next_output(text: str, place: int, path: str) -> int:
    """The place where the next output begins; the end of the text if there is none.

    Args:
        text: the text with all outputs.
        place: the place behind the output before.
        path: the path of the file, for messages.

    Raises:
        InputError: a device refuses a command before the next output.
    """
    begin = behind_banner(text, place)
    if refusal := REFUSAL.search(text, place, begin):
        reason = f"what a device says: {shown(refusal[0].strip())}"
        line = text.count("\n", 0, refusal.start()) + 1
        raise InputError.of("JSON", reason, "collect it again", path, line)
    return _behind_blanks(text, begin)


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


def _behind_blanks(text: str, place: int) -> int:
    """The place behind the blanks and line ends at a place."""
    blanks = BLANKS.match(text, place)
    return blanks.end() if blanks else place
