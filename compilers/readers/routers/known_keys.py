"""Known keys of a tree such as JSON: a shape says what may stand in it; anything else is found.

A shape is a mapping of keys (`ANY` for others) to shapes, a list with the shape of each element, a
value that has to be there, or `READ` for what a reader looks at itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

READ = object()
ANY = "*"
NAMES = ("name", "address", "prefix", "index", "host")
"""Keys by which elements of lists are told apart."""
Path = tuple[str, ...]


def unknown_keys(tree: Any, shape: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of keys and of values that a shape does not have."""
    if shape is READ:
        return
    if isinstance(shape, dict) and isinstance(tree, dict):
        for key, value in tree.items():
            inside = shape.get(key, shape.get(ANY, unknown_keys))
            if inside is unknown_keys:
                yield (*path, key)
            else:
                yield from unknown_keys(value, inside, (*path, key))
    elif isinstance(shape, list) and isinstance(tree, list):
        for value in tree:
            yield from unknown_keys(value, shape[0], (*path, *_name(value)))
    elif tree != shape or isinstance(tree, bool) != isinstance(shape, bool):
        yield path


def _name(value: Any) -> Path:
    known = [value[key] for key in NAMES if key in value] if isinstance(value, dict) else []
    return tuple(map(str, known[:1]))


def line_of(text: str, path: Path) -> int:
    """The line of a path in a text of JSON: each part of it is looked for behind the one before."""
    at = 0
    for part in path:
        at = max(text.find(f'"{part}"', at), at)
    return text.count("\n", 0, at) + 1
