"""A fabric of two switches, and its clock."""

import pytest

from controller.switches.current import Current
from controller.switches.session import LiveFabric
from tests.controller.switches.session_talk import Programs, names


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture
def fabric(now):
    build = Current("0123456789abcdef", ("a", "b"), Programs())
    return LiveFabric(build, names, clock=lambda: now[0])
