"""Words of a routing policy as numbers: shares as users write them, limits of searches."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction

from compilers.topology.family import Family

LARGEST_SEARCH = 8192
"""Switches of the largest fabric whose alternates and repair are searched for."""

EVERY_HOP = "ecmp"
"""The word of `routing.transit` by which packets in transit take all shortest paths, too."""

WORST_CASE = "worst-case"
"""In the place of a demand's file: whatever demand loads a link most."""


def constructs_classes(family: Family, parameters: Mapping[str, int | str], order: int) -> bool:
    """Whether the classes of a whole fabric are constructed because it is too large for a search.

    PolarFly's always are, and need no more than the family says.
    """
    return (
        order > LARGEST_SEARCH and not family.constructed and family.constructed_classes(parameters)
    )


PROMISED = {
    "none": (),
    "link": ("link",),
    "node": ("link", "node"),
    "module": ("link", "node", "module"),
}
"""Failures, one at a time, that lose no pair that is still joined, by the word of `protect`."""


EQUAL_COST = "equal-cost"
"""In the place of a share: as much as each alternate."""
LONGEST_EXPRESSION = 64
OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def share(text: str, q: int) -> Fraction:
    """The value of numbers, q, + - * / and parentheses; exact.

    Raises:
        ValueError: it is anything else, divides by zero, or is not from 0 to 1.
    """
    if len(text) > LONGEST_EXPRESSION:
        raise ValueError(text)
    try:
        value = _value(ast.parse(text.strip(), mode="eval").body, q, text)
    except (SyntaxError, ZeroDivisionError, MemoryError, RecursionError) as error:
        raise ValueError(text) from error
    if not 0 <= value <= 1:
        raise ValueError(text)
    return value


def _value(node: ast.expr, q: int, text: str) -> Fraction:
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](_value(node.left, q, text), _value(node.right, q, text))
    if isinstance(node, ast.Name) and node.id == "q":
        return Fraction(q)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Fraction(node.value)
    if isinstance(node, ast.Constant) and type(node.value) is float:
        written = ast.get_source_segment(text.strip(), node) or ""
        return Fraction(written) if "e" not in written.lower() else Fraction(node.value)
    raise ValueError(text)
