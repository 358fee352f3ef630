"""Walks of the tests of this folder run as machine code, which other tests need as well."""

import os
from collections.abc import Iterator

import pytest

from compilers.forwarding.machine_code import LOOPS_VARIABLE


@pytest.fixture(autouse=True, scope="module")
def machine_code() -> Iterator[None]:
    """Run loops as machine code, unless the environment says how; Python takes thrice as long."""
    with pytest.MonkeyPatch.context() as patch:
        if LOOPS_VARIABLE not in os.environ:
            patch.setenv(LOOPS_VARIABLE, "machine")
        yield
