"""F_q against galois (digests of 51 fields) and against the field axioms."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilers.topology.field import field, powers, prime_power

GALOIS = json.loads((Path(__file__).parents[2] / "data/galois_fields.json").read_text())


def digest(values):
    return hashlib.sha256(values.astype("<i4").tobytes()).hexdigest()


@pytest.mark.parametrize("q", list(map(int, GALOIS)))
def test_tables_are_those_of_galois(q):
    f = field(q)
    assert {"add": digest(f.add), "mul": digest(f.mul)} == GALOIS[str(q)]


def test_the_digests_cover_every_prime_power_to_128():
    assert [q for q in range(2, 129) if prime_power(q)] == [int(q) for q in GALOIS if int(q) <= 128]


@given(st.sampled_from([int(q) for q in GALOIS if int(q) <= 256]), st.data())
def test_field_axioms(q, data):
    f = field(q)
    a, b, c = (data.draw(st.integers(0, q - 1)) for _ in range(3))
    assert f.add[a, f.neg[a]] == 0
    assert a == 0 or f.mul[a, f.inv[a]] == 1
    assert f.mul[a, f.add[b, c]] == f.add[f.mul[a, b], f.mul[a, c]]
    assert f.mul[f.mul[a, b], c] == f.mul[a, f.mul[b, c]]


@pytest.mark.parametrize("q", [2, 3, 7, 8, 9, 25, 27])
def test_powers_of_the_least_primitive_element(q):
    f, found = field(q), powers(q)
    assert sorted(found) == list(range(1, q))
    root = int(found[1 % (q - 1)])
    assert (f.mul[found[:-1], root] == found[1:]).all()
    for smaller in range(1, root):
        power, order = smaller, 1
        while power != 1:
            power, order = int(f.mul[power, smaller]), order + 1
        assert order < q - 1


@pytest.mark.parametrize(
    ("q", "factors"),
    [(1, None), (0, None), (2, (2, 1)), (6, None), (81, (3, 4)), (1024, (2, 10)), (1000, None)],
)
def test_prime_powers(q, factors):
    assert prime_power(q) == factors


def test_a_field_that_does_not_exist():
    with pytest.raises(ValueError, match="6 is not a prime power"):
        field(6)
