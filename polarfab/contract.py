"""The door of the library: arguments are of the types that a function declares, or refused.

NumPy's scalars are taken as numbers, anything that is a path as a `Path`. A wrong type is a
`TypeError` that names function, argument, what is wanted and what was given. What values mean is
checked behind the door, with `InputError` or `ValueError`; but words to choose from (`Literal`) are
checked here, and another word is an `InputError` that names them.
"""

from __future__ import annotations

import ast
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, get_args

from compilers import choices
from inventory.problems import InputError, did_you_mean, shown

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
LONGEST = 60
"""Letters of a value in a message."""


class _WrongTypeError(Exception):
    pass


class _OtherWordError(Exception):
    """A word that is none of those to choose from."""


def contract(function: F) -> F:
    """Have a function take arguments of the types that its annotations name."""
    signature = inspect.signature(function)
    first = next(iter(signature.parameters), "")

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        called = _called(function, first, args)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{called}: {error}") from None
        for name, value in bound.arguments.items():
            parameter = signature.parameters[name]
            kind = parameter.annotation
            if not isinstance(kind, str) or value is parameter.default:
                continue
            if parameter.kind is parameter.VAR_KEYWORD:
                new: Any = {k: _taken(called, k, kind, v) for k, v in value.items()}
            elif parameter.kind is parameter.VAR_POSITIONAL:
                new = tuple(_taken(called, name, kind, v) for v in value)
            else:
                new = _taken(called, name, kind, value)
            bound.arguments[name] = new
        return function(*bound.args, **bound.kwargs)

    return checked  # type: ignore[return-value]


def contracted(kind: C) -> C:
    """Have the public methods of a class take arguments of the types that they name."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, classmethod):
            setattr(kind, name, classmethod(contract(member.__func__)))
        elif inspect.isfunction(member):
            setattr(kind, name, contract(member))
    return kind


def _called(function: Callable[..., Any], first: str, args: tuple[Any, ...]) -> str:
    """The name of a function; of a method (`first` is self) with the class it is called on."""
    if not args or first not in ("self", "cls"):
        return function.__qualname__
    owner = args[0] if isinstance(args[0], type) else type(args[0])
    return f"{owner.__name__}.{function.__name__}"


def _taken(called: str, name: str, kind: str, value: Any) -> Any:
    try:
        return _fitting(_parsed(kind), value)
    except _OtherWordError as other:
        required, todo = f"one of {', '.join(other.args)}", did_you_mean(str(value), other.args)
        raise InputError.of(required, shown(value), todo, key=name) from None
    except _WrongTypeError:
        given = f"{type(value).__name__} {value!r}"[:LONGEST]
        text = f"{called}: {name} is to be {kind}, not {given}"
        raise TypeError(text) from None


@cache
def _parsed(kind: str) -> ast.expr:
    return ast.parse(kind, mode="eval").body


def _fitting(kind: ast.expr, value: Any) -> Any:
    """The value as one of a type.

    Raises:
        _WrongTypeError: it is none.
    """
    match kind:
        case ast.BinOp() if isinstance(value, str) and not value and "Path" in ast.unparse(kind):
            raise _WrongTypeError  # it would be the working directory
        case ast.BinOp(left=left, right=right):
            for side in (right, left) if value is None else (left, right):
                try:
                    return _fitting(side, value)
                except _WrongTypeError:
                    continue
        case ast.Constant(value=None) if value is None:
            return None
        case ast.Constant(value=str() as text):
            return _fitting(_parsed(text), value)
        case ast.Name(id=name):
            return _simple(name, value)
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            return _collected(name, inner, value)
        case ast.Attribute():
            return value
    raise _WrongTypeError


def _simple(name: str, value: Any) -> Any:
    numpy = type(value).__module__ == "numpy" and hasattr(value, "item") and not value.shape
    plain = value.item() if numpy else value
    kinds: dict[str, Any] = {"bool": bool, "int": int, "float": (int, float), "str": str}
    if name in ("Any", "object") or (name == "Progress" and callable(value)):
        return value
    if words := get_args(getattr(choices, name, None)):
        if isinstance(value, str) and value not in words:
            raise _OtherWordError(*words)
        if isinstance(value, str):
            return value
        raise _WrongTypeError
    if name == "Path":
        if isinstance(value, str | os.PathLike) and os.fspath(value) not in ("", b""):
            return Path(value)
    elif name in kinds:
        nan = isinstance(plain, float) and math.isnan(plain)
        fits = isinstance(plain, kinds[name]) and not nan
        if fits and (name == "bool" or not isinstance(plain, bool)):
            return plain
    elif any(each.__name__ == name for each in type(value).__mro__):
        return value
    raise _WrongTypeError


def _collected(name: str, inner: ast.expr, value: Any) -> Any:
    kinds: dict[str, type] = {"Mapping": Mapping, "Sequence": Sequence, "Iterable": Iterable}
    if name == "Callable" and callable(value):
        return value
    if name not in (*kinds, "tuple", "list", "dict") or isinstance(value, str | bytes):
        raise _WrongTypeError
    if name in ("Mapping", "dict"):
        if not isinstance(value, Mapping) or not isinstance(inner, ast.Tuple):
            raise _WrongTypeError
        of_key, of_value = inner.elts
        return {_fitting(of_key, k): _fitting(of_value, v) for k, v in value.items()}
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise _WrongTypeError
    each = inner.elts[0] if isinstance(inner, ast.Tuple) else inner
    return tuple(_fitting(each, item) for item in value)
