"""A connection that other apps of the framework share with ours.

What a switch tells of itself (ports, packets, rows that are gone) goes to us and to them, an answer
to who has asked: the framework numbers messages of other apps in a range of their own. Switches of
no build are theirs alone, and hello and features take the framework's own way.
"""

from __future__ import annotations

from typing import Any

from compilers.targets.openflow.protocol import Malformed, MessageType, header
from controller.openflow.messages import echo_reply
from controller.switches.connections.sending import SendPriority
from controller.switches.framework import Framework

THEIRS, MOST_THEIRS = 0xC0000000, 0xCFFFFFFF
"""The xids of messages of other apps; ours are lower, or begin with 0xFF."""
TOLD = frozenset({MessageType.PORT_STATUS, MessageType.PACKET_IN, MessageType.FLOW_REMOVED})
"""What a switch tells without having been asked."""


def shared(framework: Framework, own: Any, edge: Any) -> Any:
    """Our class of connections, but so that other apps get their events.

    Args:
        framework: that the apps run on.
        own: the class of `controller.switches.connections.connection`.
        edge: gets the messages of a switch that has named itself.
    """
    main = framework.handler.MAIN_DISPATCHER

    class SharedDatapath(own):  # type: ignore[misc]
        """A connection with a switch, for all apps."""

        theirs = THEIRS

        def set_state(self, state: str) -> None:
            """Tell the edge, and other apps by the framework's event."""
            changed = state != self.state
            framework.datapath.set_state(self, state)
            if changed:
                edge.changed(self)

        def set_xid(self, msg: Any) -> int:
            """Number a message of another app."""
            self.theirs = THEIRS | (self.theirs + 1) & (MOST_THEIRS - THEIRS)
            msg.set_xid(self.theirs)
            return self.theirs

        def _message(self, kind: int, message: bytes) -> None:
            if kind == MessageType.ECHO_REQUEST:
                self.enqueue(SendPriority.URGENT, echo_reply(message))
            elif self.state != main:
                self._framework(message)
            elif kind in TOLD:
                edge.received(self, message)
                self._to_others(message)
            elif THEIRS <= header(message)[2] <= MOST_THEIRS:
                self._to_others(message)
            else:
                edge.received(self, message)

        def _to_others(self, message: bytes) -> None:
            """Hand a message to the framework; what it cannot read is nothing to its apps."""
            try:
                self._framework(message)
            except Malformed:
                return

    return SharedDatapath
