"""Writes galois_fields.json: what galois computes for F_q, as SHA-256 of its int32 tables."""

import hashlib
import json
from pathlib import Path

import galois
import numpy as np


def prime_powers(limit: int) -> list[int]:
    """By trial, without the code under test."""
    primes = [p for p in range(2, limit + 1) if all(p % d for d in range(2, p))]
    return sorted(p**n for p in primes for n in range(1, limit.bit_length()) if p**n <= limit)


def main() -> None:
    """A minute and a half: galois compiles every field."""
    table = {}
    for q in [*prime_powers(128), 169, 243, 256, 343, 512, 625, 729]:
        elements = galois.GF(q)(np.arange(q))
        table[str(q)] = {
            "add": digest(np.add.outer(elements, elements)),
            "mul": digest(np.multiply.outer(elements, elements)),
        }
    text = json.dumps(table, indent=1) + "\n"
    Path(__file__).with_name("galois_fields.json").write_text(text)


def digest(values: np.ndarray) -> str:
    """SHA-256 of the values as little-endian int32, row by row."""
    return hashlib.sha256(np.asarray(values).astype("<i4").tobytes()).hexdigest()


if __name__ == "__main__":
    main()
