"""Messages of a session: errors in words, packets from and to ports, rows in one form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilers.readers.openflow.rows import ROW, Malformed, read_row
from compilers.targets.openflow import protocol
from controller.openflow.messages import Error, boundary, commits, packet_in, port_status
from tests.controller.switches.session_talk import names


def test_numbers_without_a_name_stay_numbers():
    assert Error(99, 7, 0, 0).words(names) == "error type 99: code 7"
    assert Error(0xFFFF, 3, 0x2320, 0).words(names) == "error 3 of experimenter 0x2320"
    assert Error(1, 1, 0, 0).words(names) == "bad request: bad type"


def test_a_port_status_tells_its_port():
    body = protocol.PORT_STATUS.pack(reason=protocol.PORT_DELETED, port=7)
    said = port_status(protocol.message(protocol.MessageType.PORT_STATUS, 0, body))
    assert (said.reason, said.port) == (1, 7)


def test_chunks_end_where_messages_end():
    data = b"".join(protocol.message(2, 0, bytes(size)) for size in (0, 5, 80))
    assert [boundary(data, 0, least) for least in (1, 8, 9, 21, 22, 500)] == [
        8,
        8,
        21,
        21,
        109,
        109,
    ]


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
    assert commits(protocol.message(protocol.MessageType.EXPERIMENTER, 0, body)) is None


def test_a_mask_that_is_not_as_long_as_its_value_is_malformed():
    field = protocol.OXM.pack(space=0x8000, field=3, length=3) + b"abc"
    match = protocol.MATCH.size + len(field)
    row = np.zeros((), ROW)
    row["match_type"], row["match_length"] = protocol.OXM_MATCH, match
    with pytest.raises(Malformed, match="another length"):
        read_row((row.tobytes() + field).ljust(ROW.itemsize + protocol.padded(match), b"\0"))
