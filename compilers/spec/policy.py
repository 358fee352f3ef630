"""Values of a routing policy, the value of a share as users write it, and the limit of searches.

`fabric_spec` and `cross_checks` check the `routing:` section of fabric.yaml with these. A share is
an expression of numbers and q, the parameter of the topology, such as `1/(q+1)`; `share_value`
computes it without evaluating Python.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction

from compilers.topology.family import Family

LARGEST_SEARCH = 8192
"""The most switches of a fabric whose alternates and repairs are searched."""
EVERY_HOP = "ecmp"
"""The value of `routing.transit` by which packets in transit are shared over all shortest paths."""
WORST_CASE = "worst-case"
"""The value of `routing.demand` for the traffic that is worst for each link."""


PROTECTED_FAILURES = {
    "none": (),
    "link": ("link",),
    "node": ("link", "node"),
    "module": ("link", "node", "module"),
}
"""The failures that each value of `routing.protect` covers.

After any one of them, no pair that still has a path loses packets.
"""
EQUAL_COST = "equal-cost"
"""The value of `routing.minimal_share` for the same share as each alternate."""
LONGEST_EXPRESSION = 64
"""The most characters of an expression for a share."""
OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
"""What the operators of an expression do."""


def classes_are_constructed(
    family: Family, parameters: Mapping[str, int | str], switch_count: int
) -> bool:
    """Whether the classes of a whole fabric are constructed because it is too large for a search.

    Not so for PolarFly, whose classes are always constructed, by the family itself.

    Args:
        family: of the fabric.
        parameters: of the family.
        switch_count: how many switches the fabric has.
    """
    if switch_count <= LARGEST_SEARCH or family.constructed:
        return False
    return family.constructed_classes(parameters)


def share_value(text: str, q: int) -> Fraction:
    """Return the exact value of an expression of numbers, q, + - * / and parentheses.

    Raises:
        ValueError: the text is anything else, divides by zero, or is not from 0 to 1.

    >>> share_value("1/(q+1)", 7)
    Fraction(1, 8)
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
    """Return the value of a node in the syntax tree of an expression.

    Args:
        node: the node.
        q: the value of the name q.
        text: the whole expression.

    Raises:
        ValueError: the node is no number, q or operator.
    """
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
