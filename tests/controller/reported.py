"""What switches report, for tests of what is made of it."""

from __future__ import annotations

from compilers.targets.openflow import protocol
from compilers.targets.openflow.protocol import (
    BUNDLED,
    FLOW_MOD,
    FLOW_STATS,
    MULTIPART,
    MessageType,
)
from tests.controller.switches.conforming_switch import ConformingSwitch, Shape

DESCRIPTION = protocol.DESCRIPTION.pack(hardware=b"Open vSwitch")


def holds(switch, program):
    """Whether a switch holds just this program."""
    blocks = (*program.groups, *program.flows)
    return switch.tables == ConformingSwitch(0, (), Shape()).apply(blocks).tables


def as_entry(mod, carried=6):
    """A row as a switch that holds it reports it."""
    counted = {"seconds": 77, "nanoseconds": 88, "packets": 5, "bytes": carried}
    return restated(mod, FLOW_MOD, FLOW_STATS, **counted)


def restated(data, layout, form, **members):
    """A structure in another form: its members of one name, these, and what follows it."""
    said = layout.read(data)._asdict()
    members |= {name: value for name, value in said.items() if name in form.formats}
    rest = data[layout.size :]
    if "length" in form.formats:
        members["length"] = form.size + len(rest)
    return form.pack(**members) + rest


def multipart(kind, xid, body=b"", more=0):
    """A part of a multipart reply."""
    head = MULTIPART.pack(kind=kind, flags=more)
    return protocol.message(MessageType.MULTIPART_REPLY, xid, head + body)


def as_entries(block):
    """Bundled flow-mods as a switch that holds their rows reports them, with ages and counters."""
    return [as_entry(message.tobytes()[BUNDLED:]) for message in block]
