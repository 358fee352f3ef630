"""What a switch says that it can do, also where that cannot be read."""

import pytest

from compilers.targets.openflow.profiles import OVS
from compilers.targets.openflow.protocol import DESCRIPTION, PROPERTY, TABLE_FEATURES
from controller.openflow.switch_features import Limits, features, is_open_vswitch

HEAD = TABLE_FEATURES.pack(length=72)
ENDLESS = HEAD + PROPERTY.pack() + PROPERTY.pack(type=8)
CUT_OFF = HEAD + PROPERTY.pack(type=8, length=400) + bytes(4)


@pytest.mark.parametrize(
    ("groups", "tables"), [(None, None), (b"", b""), (bytes(39), bytes(70)), (b"\0", HEAD[:50])]
)
def test_what_cannot_be_read_was_not_said(groups, tables):
    assert features(groups, tables) == (OVS, Limits())


@pytest.mark.parametrize("tables", [ENDLESS, CUT_OFF])
def test_properties_are_read_as_far_as_they_go(tables):
    assert features(None, tables)[0].tables == 1


@pytest.mark.parametrize(
    ("numbers", "count"),
    [((0, 10, 20, 30, 40, 50, 60), 1), ((0, 1, 2, 200), 3), ((3, 2, 1, 0), 4), ((7,), 1)],
)
def test_tables_count_up_to_the_first_that_is_not_there(numbers, count):
    """OF-DPA has few tables of many numbers: programs use 0, 1, 2 and 3."""
    size = TABLE_FEATURES.size
    tables = b"".join(TABLE_FEATURES.pack(length=size, table=number) for number in numbers)
    assert features(None, tables)[0].tables == count


@pytest.mark.parametrize(
    ("description", "is_one"),
    [
        (None, False),
        (b"Open vSwitch", False),
        (DESCRIPTION.pack(maker=b"Open vSwitch"), False),
        (DESCRIPTION.pack(hardware=b"Open vSwitch"), True),
    ],
)
def test_open_vswitch_is_known_by_its_hardware(description, is_one):
    assert is_open_vswitch(description) == is_one
