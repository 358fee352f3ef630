"""Shares of traffic as a user writes them: `0.1`, `2/3`, `1/q`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from fractions import Fraction

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
