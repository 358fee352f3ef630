"""A parser of JSON that refuses a key that an object has twice, NaN and Infinity.

Python and devices would take the last of two values without a word.
"""

from __future__ import annotations

import json
from typing import Any


class JsonError(ValueError):
    """A text that is no JSON."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.line = line
        """Where it goes wrong, 0 where that is not known. For a key that is there twice, it is the
        line of the second text of that name, which may be in another object."""


class _RepeatedKeyError(Exception):
    """An object has a key twice; `parse`, which has the text, makes a `JsonError` of it."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def parse(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        JsonError: it is no JSON, or a key occurs twice in an object.

    >>> parse('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    compilers.readers.strict_json.JsonError: the key a twice in an object
    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise JsonError(f"no JSON: {error.msg}", error.lineno) from error
    except RecursionError as error:
        raise JsonError("no JSON that anything reads: it is too deep", 0) from error
    except _RepeatedKeyError as error:
        # The hook of `json.loads` knows no lines, so the key is searched in the text.
        first = text.find(f'"{error.key}"')
        line = text.count("\n", 0, text.find(f'"{error.key}"', first + 1)) + 1
        raise JsonError(f"the key {error.key} twice in an object", line) from error
    except JsonError:
        raise
    except ValueError as error:
        raise JsonError(f"no JSON that anything reads: {error}", 0) from error


def _constant(word: str) -> Any:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise JsonError(f"no JSON: {word}", 0)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object with some pairs of a key and a value.

    Raises:
        _RepeatedKeyError: a key occurs twice.
    """
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return value
