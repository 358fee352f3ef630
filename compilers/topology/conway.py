"""Writes conway.json: the Conway polynomials of galois for q = p^n ≤ 1,024, n > 1."""

from __future__ import annotations

import json

from compilers.topology.field import CONWAY, prime_power

LIMIT = 1024


def main() -> None:
    """Ask galois for each polynomial and write them beside this module."""
    import galois

    table = {}
    for q in range(4, LIMIT + 1):
        factors = prime_power(q)
        if factors is not None and factors[1] > 1:
            table[str(q)] = [int(c) for c in galois.conway_poly(*factors).coeffs]
    rows = ",\n".join(f'  "{q}": {json.dumps(poly)}' for q, poly in table.items())
    CONWAY.write_text("{\n" + rows + "\n}\n")


if __name__ == "__main__":
    main()
