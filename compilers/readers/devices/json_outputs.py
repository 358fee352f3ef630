"""Texts with the outputs of several commands in JSON, one after the other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from compilers.readers.devices.device_files import without_prompts
from inventory.problems import InputError

BLANKS = re.compile(r"\s*")
_decoder = json.JSONDecoder()


def json_outputs(text: str, path: str = "") -> Iterator[Any]:
    """The outputs in a text that are not empty: an IPv6 table without a route is `{}`.

    Raises:
        InputError: it is not JSON; with this path.
    """
    text = without_prompts(text)
    at = _behind_blanks(text, 0)
    while at < len(text):
        try:
            document, at = _decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            given = f"{error.msg} in column {error.colno}"
            raise InputError.of("JSON", given, "", path, error.lineno) from None
        except (RecursionError, ValueError):
            given = "numbers or nesting beyond measure"
            raise InputError.of("JSON", given, "", path) from None
        if document:
            yield document
        at = _behind_blanks(text, at)


def _behind_blanks(text: str, at: int) -> int:
    found = BLANKS.match(text, at)
    return found.end() if found else at
