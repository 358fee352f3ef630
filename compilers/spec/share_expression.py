"""The value of a share of traffic, which users write as a number or as an expression of q.

A share is an expression of numbers and q, the parameter of the topology, such as `1/(q+1)`. Python
parses the text into a syntax tree. `share_value` computes the tree itself, with exact fractions,
and evaluates no Python code of the user.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from fractions import Fraction

LONGEST_EXPRESSION = 64
"""The most characters of an expression. It bounds the time to parse and compute one."""
OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
"""What the operators of an expression do."""


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
        # The text of 0.1 is exactly a tenth; its value as a float is not. A text with an exponent
        # may stand for a number of very many digits, so its float is taken.
        decimal_text = ast.get_source_segment(text.strip(), node) or ""
        has_exponent = "e" in decimal_text.lower()
        return Fraction(node.value) if has_exponent else Fraction(decimal_text)
    raise ValueError(text)
