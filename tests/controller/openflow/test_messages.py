"""Messages of a session: errors in words, packets from and to ports, rows in one form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilers.readers.openflow.rows import ROW, Malformed, read_row
from compilers.targets.openflow import protocol
from controller.openflow.messages import committed_bundle, packet_in, port_status

READERS = (packet_in, port_status, read_row)


@pytest.mark.parametrize("reader", READERS)
@given(data=st.binary(max_size=120))
def test_no_bytes_are_more_than_malformed(reader, data):
    try:
        reader(data)
    except Malformed:
        return


@given(st.binary(max_size=80))
def test_no_experimenter_message_is_taken_for_a_commit(body):
    assert committed_bundle(protocol.message(protocol.MessageType.EXPERIMENTER, 0, body)) is None


def test_a_mask_that_is_not_as_long_as_its_value_is_malformed():
    field = protocol.OXM.pack(space=0x8000, field=3, length=3) + b"abc"
    match = protocol.MATCH.size + len(field)
    row = np.zeros((), ROW)
    row["match_type"], row["match_length"] = protocol.OXM_MATCH, match
    with pytest.raises(Malformed, match="another length"):
        read_row((row.tobytes() + field).ljust(ROW.itemsize + protocol.padded(match), b"\0"))
