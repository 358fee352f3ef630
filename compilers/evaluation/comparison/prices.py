"""Prices of the papers' two cost models, and a reader for other prices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from inventory.problems import InputError, Problem, did_you_mean, shown
from inventory.yamlfile import Document, read

DEFAULT = Path(__file__).with_name("prices.yaml")
PRICE = re.compile(r"-?[0-9]+(\.[0-9]+)?")
MAY_BE_NEGATIVE = ("router_base",)
MAY_BE_ZERO = (*MAY_BE_NEGATIVE, "router_per_port", "electrical_per_gbps", "watts_per_port")


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices as in `prices.yaml`: $ and watts (Projective Networks §V-C), ports (PolarFly §X)."""

    link_gbps: float
    router_per_port: float
    router_base: float
    electrical_per_gbps: float
    optical_per_gbps: Mapping[int, float]
    watts_per_port: float
    electrical_group: float
    links_per_module: float
    saturation_uniform: float
    saturation_permutation_direct: float
    saturation_permutation_indirect: float

    def optical(self, hosts: int) -> float:
        """$ per Gbps of an optical cable in a fabric of `hosts`: linear between known sizes."""
        known = sorted(self.optical_per_gbps.items())
        for (low, cheap), (high, dear) in pairwise(known):
            if low <= hosts <= high:
                return cheap + (dear - cheap) * (hosts - low) / (high - low)
        return known[0][1] if hosts < known[0][0] else known[-1][1]


def prices(file: str | Path | None = None) -> Prices:
    """The prices of the papers, with those of `file` in their place.

    Raises:
        InputError: the file cannot be read, has an unknown key, or a value that is no number.
    """
    values = _values(read(DEFAULT))
    if file is not None:
        values |= _values(read(file))
    return Prices(**values)


def _values(document: Document) -> dict[str, Any]:
    known = [field.name for field in fields(Prices)]
    values: dict[str, Any] = {}
    problems = []
    for key, value in document.data.items():
        if key not in known:
            todo = did_you_mean(key, known, f"remove it; the keys here are {', '.join(known)}")
            problems.append(document.problem((key,), "a known key", shown(key), todo))
            continue
        found = _by_size(document, value) if key == "optical_per_gbps" else _number(key, value)
        if isinstance(found, Problem):
            problems.append(found)
        elif found is None:
            problems.append(document.problem((key,), _required(key), shown(value)))
        else:
            values[key] = found
    if problems:
        raise InputError(problems)
    return values


def _number(key: str, value: object) -> float | None:
    if not PRICE.fullmatch(str(value)):
        return None
    number = float(str(value))
    if key in MAY_BE_NEGATIVE or number > 0 or (key in MAY_BE_ZERO and number == 0):
        return number
    return None


def _required(key: str) -> str:
    if key in MAY_BE_NEGATIVE:
        return "a number"
    return "a number of at least 0" if key in MAY_BE_ZERO else "a number above 0"


def _by_size(document: Document, value: object) -> dict[int, float] | Problem:
    """Hosts → $ per Gbps; a single number is the price for every size."""
    key = "optical_per_gbps"
    if isinstance(value, dict) and value:
        found = {int(k): _number(key, v) for k, v in value.items() if re.fullmatch("[0-9]+", k)}
        if len(found) == len(value) and None not in found.values():
            return {hosts: price for hosts, price in found.items() if price is not None}
    elif (number := _number(key, value)) is not None:
        return {0: number}
    required = "a number above 0, or a mapping hosts: number"
    return document.problem((key,), required, shown(value))
