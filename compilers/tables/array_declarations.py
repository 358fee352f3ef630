"""Declarations of the arrays and lists of a build, and how values are compared with them.

- `Annotated[NDArray[np.int32], "S K", "-1..S"]` declares an array of int32 with dimensions S and K
  and values from -1 to S - 1. A dimension has the same length in all arrays that name it.
- `S+1` and `2E` are lengths derived from a name. `ports` is the largest port number, `prefixes` the
  number of prefixes, and `macs` the number of MAC addresses.
- `Annotated[tuple[str, ...], "S", "name"]` declares a list of S names.

The dataclasses of a build have these annotations. `compilers.tables.build_codec` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import filterfalse, repeat
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from compilers.tables.folders.folder_contents import FABRIC
from inventory.names import NAME
from inventory.problems import shown

NAMES_RULE = "name"
"""The rule of a list whose entries have to be names (`inventory.names.NAME`)."""
LENGTH = re.compile(r"(\d*)([A-Za-z]*)\+?(\d*)")
"""A declared length such as S, 2E, S+1 or 2: a factor, a name, and a number to add."""
Sizes = dict[str, int]
"""The length of each named dimension, as far as it is known."""


class Misfit(ValueError):
    """A field of a build is not as it is declared.

    Attributes:
        file: the path below the build's folder of the file that holds the field.
    """

    def __init__(self, array: str, text: str) -> None:
        """Say what does not fit.

        Args:
            array: the name of an array, "" for plain data.
            text: the message.
        """
        super().__init__(text)
        self.file = array_file(array) if array else FABRIC


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of an array or of a list."""

    name: str
    """The name of the array, or of the list's field."""
    kind: Any
    """The type, without what `Annotated` adds."""
    scalar_types: tuple[str, ...]
    """The names of the scalar types that an array may have; () for a list."""
    shape: str
    """The dimensions of an array, or the length of a list."""
    rule: str = ""
    """The range of an array's values, or `NAMES_RULE` for a list of names.

    In the range "0..C marks" the two largest numbers of the type are values, too: `no_route` and
    `local`.
    """

    @property
    def is_array(self) -> bool:
        """Whether this declares an array; else it declares a list."""
        return bool(self.scalar_types)

    def __str__(self) -> str:
        """The form in messages: `int32[S, K]`."""
        return f"{' or '.join(self.scalar_types)}[{', '.join(self.shape.split())}]"

    def misfit(self, value: Any, sizes: Sizes) -> str:
        """Return in words how a value's type or shape differs from the declaration, "" if it fits.

        Args:
            value: an array or a list.
            sizes: the lengths known so far; lengths that this value is the first to have are added.
        """
        declared, shape = self.shape.split(), value.shape if self.is_array else (len(value),)
        fits = len(shape) == len(declared) and all(map(_fits, declared, shape, repeat(sizes)))
        if not self.is_array and not fits:
            return f"{self.name} has {len(value)} items, not {self.shape}"
        if self.is_array and not (fits and str(value.dtype) in self.scalar_types):
            return f"{self.name} is {value.dtype}{list(shape)}, not {self}"
        if self.rule == NAMES_RULE:
            wrong = next(filterfalse(NAME.fullmatch, value), None)
            return "" if wrong is None else f"{self.name} has {shown(wrong)}, which is no name"
        return ""

    def out_of_range(self, array: NDArray[Any], sizes: Sizes) -> str:
        """Return in words that values of an array are out of range, "" if none are.

        Args:
            array: the array, of a type and shape that fit.
            sizes: the lengths of all dimensions.
        """
        if not self.rule or not array.size:
            return ""
        # From "0..C marks": the lowest value, the name of the end, and whether marks are allowed.
        low, end, *marks = re.split(r"\.\.| ", self.rule)
        limit = _length(end, sizes)
        highest = int(array.max())
        if marks and highest >= limit:
            first_mark = int(np.iinfo(array.dtype).max) - 1
            highest = max(int(row[row < first_mark].max(initial=0)) for row in array)
        lowest = 0 if array.dtype.kind == "u" else int(array.min())
        if not int(low) <= lowest <= highest < limit:
            return f"{self.name} has values outside {self.rule} ({end} is {limit})"
        return ""


def _fits(declared: str, length: int, sizes: Sizes) -> bool:
    """Whether a dimension has its declared length.

    The name of a dimension that is not in `sizes` yet gets its length from this one.
    """
    factor, name, addend = LENGTH.findall(declared)[0]
    without_addend = length - int(addend or 0)
    if name and name not in sizes:
        sizes[name] = without_addend // int(factor or 1)
    return without_addend >= 0 and _length(declared, sizes) == length


def _length(declared: str, sizes: Sizes) -> int:
    """Return the number that a declared length stands for: with S = 7, 8 for `S+1`."""
    factor, name, addend = LENGTH.findall(declared)[0]
    return int(factor or 1) * (sizes[name] if name else 1) + int(addend or 0)


def scalar_types(hint: Any) -> Iterator[str]:
    """Yield the scalar types that an array's annotation names.

    They are looked for at any depth, as versions of NumPy write the annotation in several forms.
    """
    if isinstance(hint, type) and issubclass(hint, np.generic):
        yield str(np.dtype(hint))
    for inner in get_args(hint):
        yield from scalar_types(inner)


def array_file(array: str) -> str:
    """Return the path of an array's file below the folder of a build.

    >>> array_file("route_egress")
    'arrays/route_egress.npy'
    """
    return f"arrays/{array}.npy"
