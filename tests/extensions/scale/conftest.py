"""Walks of the tests of this folder run as machine code; in Python they take thrice as long."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def walks(machine_code: None) -> None:
    """Use the machine code of loops in all modules."""
