"""Prices of the papers' two cost models, and a reader for other prices.

`prices` returns the prices of the papers, or of a user's file. `candidates` computes costs with
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from inventory.problems import InputError, did_you_mean, shown
from inventory.yamlfile import Document, read

PAPER_PRICES = Path(__file__).with_name("prices.yaml")
"""The prices of the papers."""
PRICE = re.compile(r"-?[0-9]+(\.[0-9]+)?")
"""A price, such as 350.4 or -892.3."""
PRICE_BY_SIZE = "optical_per_gbps"
"""The key whose price may depend on the size of the fabric."""
MAY_BE_NEGATIVE = ("router_base",)
"""Prices that may be negative."""
MAY_BE_ZERO = (*MAY_BE_NEGATIVE, "router_per_port", "electrical_per_gbps", "watts_per_port")
"""Prices that may be 0; all others are above 0."""


@dataclass(frozen=True, slots=True)
class Prices:
    """The values of `prices.yaml`: $ and watts (Projective Networks §V-C), ports (PolarFly §X).

    Besides prices these are sizes of groups and modules, and the loads that fabrics sustain, by
    which costs of fabrics are compared.
    """

    link_gbps: float
    """The rate of a link in Gbps."""
    router_per_port: float
    """$ of a port of a router."""
    router_base: float
    """$ of a router without its ports."""
    electrical_per_gbps: float
    """$ per Gbps of a cable within an electrical group."""
    optical_per_gbps: Mapping[int, float]
    """$ per Gbps of a cable between groups, by the number of hosts of the fabric."""
    watts_per_port: float
    """W of a port of a router."""
    electrical_group: float
    """The hosts of an electrical group."""
    links_per_module: float
    """The links of a co-packaged optical module."""
    saturation_uniform: float
    """The uniform load that a fabric sustains, as a share of the rate of hosts."""
    saturation_permutation_direct: float
    """The load by permutations that a fabric with hosts at every switch sustains."""
    saturation_permutation_indirect: float
    """The load by permutations that a fabric with hosts at leaves only sustains."""

    def optical(self, hosts: int) -> float:
        """$ per Gbps of an optical cable in a fabric of `hosts`: linear between known sizes."""
        sizes = sorted(self.optical_per_gbps.items())
        for (smaller, price_at_smaller), (larger, price_at_larger) in pairwise(sizes):
            if smaller <= hosts <= larger:
                growth = price_at_larger - price_at_smaller
                return price_at_smaller + growth * (hosts - smaller) / (larger - smaller)
        return sizes[0][1] if hosts < sizes[0][0] else sizes[-1][1]


def prices(file: str | Path | None = None) -> Prices:
    """The prices of the papers; prices in `file` take their place.

    Raises:
        InputError: the file cannot be read, has an unknown key, or a value that is no number.
    """
    values = _values(read(PAPER_PRICES))
    if file is not None:
        values |= _values(read(file))
    return Prices(**values)


def _values(document: Document) -> dict[str, Any]:
    """Return the prices of a file by the names of `Prices`' fields.

    Raises:
        InputError: an unknown key, or a value that is no number.
    """
    keys = [field.name for field in fields(Prices)]
    values: dict[str, Any] = {}
    problems = []
    for key, value in document.data.items():
        if key not in keys:
            todo = did_you_mean(key, keys, f"remove it; the keys here are {', '.join(keys)}")
            problems.append(document.problem((key,), "a known key", shown(key), todo))
            continue
        price = _price_by_size(value) if key == PRICE_BY_SIZE else _price(key, value)
        if price is None:
            problems.append(document.problem((key,), _required(key), shown(value)))
        else:
            values[key] = price
    if problems:
        raise InputError(problems)
    return values


def _price(key: str, value: object) -> float | None:
    """Return a price as a number; None if it is no number, or too small for its key."""
    if not PRICE.fullmatch(str(value)):
        return None
    number = float(str(value))
    if key in MAY_BE_NEGATIVE or number > 0 or (key in MAY_BE_ZERO and number == 0):
        return number
    return None


def _required(key: str) -> str:
    """Return in words what the value of a key may be, for messages."""
    if key == PRICE_BY_SIZE:
        return "a number above 0, or a mapping hosts: number"
    if key in MAY_BE_NEGATIVE:
        return "a number"
    return "a number of at least 0" if key in MAY_BE_ZERO else "a number above 0"


def _price_by_size(value: object) -> dict[int, float] | None:
    """Return the prices of `PRICE_BY_SIZE` by the number of hosts; None if one is wrong.

    A single number is the price for every size.
    """
    if not isinstance(value, dict):
        price = _price(PRICE_BY_SIZE, value)
        return None if price is None else {0: price}
    price_of_size: dict[int, float] = {}
    for hosts, text in value.items():
        price = _price(PRICE_BY_SIZE, text)
        if price is None or not re.fullmatch("[0-9]+", hosts):
            return None
        price_of_size[int(hosts)] = price
    return price_of_size or None
