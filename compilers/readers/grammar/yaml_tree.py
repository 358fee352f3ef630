"""YAML as mappings, lists and texts, in which each key knows its line.

`tree_lines` calls `read_yaml` for the one file of a system in YAML, NVUE's startup.yaml.
`yaml_node` guards the parser against texts that are nested too deep.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from compilers.readers.exact_text import exact_lines, indentation

DEEPEST = 64
"""The most levels of YAML; rendered files have fewer than ten."""
ROUTE = re.compile(r' *"([^"]+)": (\{.*\})')
"""A line of YAML that is a key and a whole mapping, as lines of routes are."""


class LineKey(str):
    """A key of YAML that knows its line."""

    line: int = 0
    """The number of the line, from 1; 0 before it is set."""


def read_yaml(text: str) -> Any:
    """The commands of NVUE's startup.yaml: a list of one mapping, whose only key is `set`.

    A YAML parser takes half a second for a thousand lines of routes. Routes are the last lines of
    the file, each a key with a mapping (`ROUTE`), and few of these mappings differ. So each
    different mapping is parsed once, and the parser gets the lines above, with one key "" in the
    place of the routes.

    Raises:
        ValueError: (line, text) the text is no YAML, is too deep, or has a key twice.
    """
    lines = exact_lines(text)
    first = _first_route(lines)
    above, route_lines = lines[:first], lines[first:]
    try:
        routes = _routes(route_lines, first + 1)
        depths = {indentation(line) for line in route_lines}
        has_key_above = bool(above) and above[-1].endswith(":")
        if len(depths) != 1 or not has_key_above:  # the lines are no routes of one mapping
            return _commands(_value(yaml_node(text)))
        placeholder = " " * depths.pop() + '"": {}'
        return _commands(_value(yaml_node("\n".join([*above, placeholder])), routes))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise ValueError(line, f"{error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(0, f"no YAML: {error}") from error


def _first_route(lines: list[str]) -> int:
    """The index of the first of the last lines that are all routes."""
    first = len(lines)
    while first and ROUTE.fullmatch(lines[first - 1]):
        first -= 1
    return first


def _routes(lines: list[str], number: int) -> dict[str, Any]:
    """The mapping of routes.

    Args:
        lines: the lines, which are all routes.
        number: the number of the first line in its file.

    Raises:
        ValueError: (line, text) a mapping is too deep, or a key is there twice.
        YAMLError: a mapping is no YAML.
    """
    routes: dict[str, Any] = {}
    parsed: dict[str, Any] = {}
    for line, match in enumerate(map(ROUTE.fullmatch, lines), number):
        if match is None:
            continue
        key, mapping = match.groups()
        if mapping not in parsed:
            parsed[mapping] = _value(yaml_node(mapping))
        _enter(routes, key, line, parsed[mapping])
    return routes


def yaml_node(text: str) -> yaml.Node | None:
    """The node of a text of YAML.

    libyaml composes nodes by recursion in C, which crashes on a deep text. So the depth is counted
    first, by events of the parser, which need no recursion.

    Raises:
        ValueError: (line, text) the text is too deep.
        YAMLError: the text is no YAML.
    """
    depth = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            line = event.start_mark.line + 1 if event.start_mark else 0
            raise ValueError(line, "no YAML that anything reads: too deep")
    return yaml.compose(text, yaml.CSafeLoader)


def _commands(tree: Any) -> Any:
    """The mapping below `set`, if the file is a list of one mapping that has only this key.

    Any other tree becomes a mapping that no grammar of commands takes.
    """
    match tree:
        case [{"set": dict(commands), **more}] if not more:
            return commands
    return {"no set": tree}


def _value(node: yaml.Node | None, routes: dict[str, Any] | None = None) -> Any:
    """The mappings, lists and texts of a node; all plain values are texts.

    Args:
        node: of YAML.
        routes: entries to put in the place of the key "".

    Raises:
        ValueError: (line, text) a key is twice in a mapping.
    """
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key, value in node.value:
            if routes is not None and key.value == "":
                mapping |= routes
            else:
                _enter(mapping, key.value, key.start_mark.line + 1, _value(value, routes))
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_value(entry, routes) for entry in node.value]
    return node.value if node else {}


def _enter(mapping: dict[str, Any], word: object, line: int, value: Any) -> None:
    """Put a key with its line into a mapping.

    Raises:
        ValueError: (line, text) the mapping has the key already.
    """
    key = LineKey(word)
    key.line = line
    if key in mapping:
        raise ValueError(line, f"the key {key} twice in a mapping")
    mapping[key] = value
