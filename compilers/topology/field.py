"""Finite fields F_q as lookup tables, in the numbering of `galois`.

Elements are the integers 0..q-1. For q = p^n the base-p digits of an integer are the coefficients
of a polynomial modulo the Conway polynomial, as in `galois.GF(q)`. Importing galois and making a
field takes seconds. So `conway` has the Conway polynomials for q ≤ 1,024, and only larger fields
import galois.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from compilers.topology.conway import CONWAY

LARGEST_Q = 1024
"""The largest q that families take."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """The finite field F_q as lookup tables.

    >>> f = field(4)
    >>> int(f.mul[2, f.inv[2]]), int(f.add[3, f.neg[3]])
    (1, 0)
    """

    q: int
    """The number of elements."""
    add: NDArray[np.int32]
    """int32[q, q], the sum of two elements."""
    mul: NDArray[np.int32]
    """int32[q, q], the product of two elements."""
    neg: NDArray[np.int32]
    """int32[q], the negative of each element."""
    inv: NDArray[np.int32]
    """int32[q], the inverse of each element; 0 for 0, which has none."""


def prime_power(q: int) -> tuple[int, int] | None:
    """Return (p, n) with q = p^n and p prime, None where q is no prime power.

    >>> prime_power(27), prime_power(6)
    ((3, 3), None)
    """
    if q < 2:
        return None
    p = next((d for d in range(2, int(q**0.5) + 1) if q % d == 0), q)
    n = 0
    while q % p == 0:
        q //= p
        n += 1
    return (p, n) if q == 1 else None


def prime_powers_near(q: int) -> tuple[int, int]:
    """Return the largest prime power below q (2 at least) and the smallest above q.

    >>> prime_powers_near(6)
    (5, 7)
    """
    below = next((k for k in range(q - 1, 1, -1) if prime_power(k)), 2)
    above = next(k for k in range(max(q, 1) + 1, 2 * max(q, 2) + 1) if prime_power(k))
    return below, above


def conway_polynomial(p: int, n: int) -> tuple[int, ...]:
    """Return the coefficients of the Conway polynomial of F_(p^n), the leading 1 first."""
    if stored := CONWAY.get(p**n):
        return stored
    import galois

    return tuple(int(c) for c in galois.conway_poly(p, n).coeffs)


@lru_cache(maxsize=8)
def field(q: int) -> Field:
    """Return the tables of F_q.

    Raises:
        ValueError: q is not a prime power.
    """
    factors = prime_power(q)
    if factors is None:
        raise ValueError(f"{q} is not a prime power")
    add, mul = _prime(q) if factors[1] == 1 else _extension(*factors)
    neg = np.argmin(add, axis=1).astype(np.int32)
    inv = np.argmax(mul == 1, axis=1).astype(np.int32)
    for table in (add, mul, neg, inv):
        table.flags.writeable = False
    return Field(q=q, add=add, mul=mul, neg=neg, inv=inv)


def powers(q: int) -> NDArray[np.int32]:
    """Return the powers ξ⁰, ξ¹, … of the least primitive element ξ of F_q, int32[q - 1].

    Raises:
        ValueError: q is not a prime power.

    >>> powers(5)
    array([1, 2, 4, 3], dtype=int32)
    """
    product = field(q).mul.tolist()
    for element in range(1, q):
        powers_of_element = [1]
        while (power := product[element][powers_of_element[-1]]) != 1:
            powers_of_element.append(power)
        if len(powers_of_element) == q - 1:
            return np.array(powers_of_element, np.int32)
    raise AssertionError("every finite field has a primitive element")


def _prime(p: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the sums and products of F_p, int32[p, p] each: sums and products modulo p."""
    elements = np.arange(p, dtype=np.int32)
    return np.add.outer(elements, elements) % p, np.multiply.outer(elements, elements) % p


def _extension(p: int, n: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the sums and products of F_(p^n), int32[q, q] each.

    Sums are taken digit by digit, products by the logarithms to the base x.
    """
    q = p**n
    place = p ** np.arange(n)
    digits = np.arange(q)[:, None] // place % p  # int64[q, n], the lowest first
    add = sum(np.add.outer(digits[:, i], digits[:, i]) % p * place[i] for i in range(n))

    # x is primitive modulo a Conway polynomial, so its powers are all the non-zero elements.
    low_first = np.array(conway_polynomial(p, n)[::-1])
    power = np.empty(q - 1, np.int32)
    element = np.eye(n, dtype=np.int64)[0]  # the digits of 1, the lowest first
    for exponent in range(q - 1):
        power[exponent] = element @ place
        # Times x, less the multiple of the polynomial that takes x^n away.
        shifted = np.concatenate(([0], element))
        element = ((shifted - shifted[n] * low_first) % p)[:n]
    log = np.empty(q, np.int32)
    log[power] = np.arange(q - 1)
    mul = np.zeros((q, q), np.int32)
    mul[1:, 1:] = power[np.add.outer(log[1:], log[1:]) % (q - 1)]
    return np.asarray(add, np.int32), mul
