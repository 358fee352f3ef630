"""OpenFlow roles (OpenFlow 1.3.5, §6.3.6): only a leader's connections reach the fabric.

With several controllers, the app (`controller.app`) passes connections and messages to a `Roles`
instead of the fabric. `Roles` requests our role of each switch. The fabric learns of a switch once
the switch has confirmed us as its master. A switch accepts a role only from the highest term that
it has seen, and changes nothing for a slave: so it refuses late messages of a deposed leader. A
switch that is not of the build may be of another fabric, with a leader of its own: no role is
requested of it. No I/O.
"""

from __future__ import annotations

from collections.abc import Container, Hashable
from dataclasses import dataclass

from compilers.targets.openflow.protocol import (
    HEADER,
    ROLE,
    BadRequest,
    ControllerRole,
    ErrorType,
    MessageType,
    header,
    message,
)
from controller.openflow.messages import Error, SessionXid
from controller.switches.connections.sending import SendPriority
from controller.switches.events import RoleContested
from controller.switches.session import LiveFabric

ROLE_RETRY = 1.0
"""Seconds before a switch that refused our role is asked again."""


def role_request(role: ControllerRole, term: int) -> bytes:
    """A role request; the term is its generation id."""
    body = ROLE.pack(role=role, generation=term)
    return message(MessageType.ROLE_REQUEST, SessionXid.ROLE, body)


@dataclass(slots=True)
class _RolePeer:
    """A connection with a switch that has named itself."""

    datapath_id: int
    """The switch's OpenFlow datapath id."""
    address: str
    """The address that the switch connects from."""
    certificate: frozenset[str] | None = None
    """The nodes that the switch's certificate names; None without TLS."""
    confirmed_us: bool = False
    """Whether the switch has confirmed us as its master."""
    refused_us: bool = False
    """Whether the switch has refused us as its master."""
    requested_at: float | None = None
    """When our role was requested last; None if it never was."""


class Roles:
    """Requests our role of all switches; passes on to the fabric those whose master we are."""

    def __init__(self, fabric: LiveFabric) -> None:
        self._fabric = fabric
        self._contested = set[int]()
        """The datapath ids of switches that have refused us as their master."""
        self._peers: dict[Hashable, _RolePeer] = {}
        """All connections."""
        self._term, self._leads = 0, False
        """The term, and whether we lead in it."""
        fabric.awaits_role = self.awaits_role

    def __len__(self) -> int:
        return len(self._peers)

    def follow(self, term: int) -> None:
        """Become a slave of all switches, as another instance leads in this term.

        A controller that leads does not: once its term has ended, its process restarts.
        """
        if term != self._term and not self._leads:
            self._term = term
            for key in self._peers:
                self._request_role(key)

    def lead(self, term: int) -> None:
        """Become the master of all switches."""
        self._term, self._leads = term, True
        for key in self._peers:
            self._request_role(key)

    def connected(
        self,
        key: Hashable,
        datapath_id: int,
        address: str = "",
        certificate: frozenset[str] | None = None,
    ) -> None:
        """Request our role of a switch that has named itself.

        Args:
            key: the connection.
            datapath_id: the switch's OpenFlow datapath id.
            address: the address that the switch connects from.
            certificate: the nodes that the switch's certificate names; None without TLS.
        """
        self._peers[key] = _RolePeer(datapath_id, address, certificate)
        self._fabric.note_host(datapath_id, address, certificate)
        self._request_role(key)

    def received(self, key: Hashable, message: bytes) -> None:
        """Take a message of a switch; the caller closes the connection if it is malformed.

        An answer to our role request decides whether we are the switch's master. Other messages go
        to the fabric while we are. If the switch reports that another controller is its master by
        now, the connection is closed.
        """
        peer = self._peers.get(key)
        kind, _, xid = header(message)
        if peer is None:
            return
        if kind == MessageType.ROLE_REPLY and xid == SessionXid.ROLE:
            self._confirmed(key, peer, message)
        elif peer.confirmed_us:
            if _says_that_we_are_slave(kind, message):
                self._fabric.send(key, SendPriority.URGENT, None)  # None closes the connection
            else:
                self._fabric.received(key, message)
        elif self._leads and kind == MessageType.ERROR and xid == SessionXid.ROLE:
            self._refused(peer)

    def closed(self, key: Hashable) -> None:
        """Forget a connection that has ended."""
        peer = self._peers.pop(key, None)
        if peer is not None and peer.confirmed_us:
            self._fabric.closed(key)

    def tick(self) -> None:
        """While we lead, request our role again of switches that have refused or not answered, and
        of those that a move adds.
        """
        if not self._leads:
            return
        now = self._fabric.clock()
        for key, peer in self._peers.items():
            is_due = peer.requested_at is None or now - peer.requested_at > ROLE_RETRY
            if is_due and not peer.confirmed_us:
                self._request_role(key)

    def _request_role(self, key: Hashable) -> None:
        """Request our role of a switch of the build, once it is known who leads.

        A leader reports a switch that is not of its build. Others do not: their build may be an old
        one.
        """
        if not self._term:
            return
        peer = self._peers[key]
        if peer.datapath_id not in self._fabric.current.programs.by_datapath_id:
            if self._leads:
                self._fabric.report_unknown(peer.datapath_id, peer.address)
            return
        peer.requested_at = self._fabric.clock()
        role = ControllerRole.MASTER if self._leads else ControllerRole.SLAVE
        self._fabric.send(key, SendPriority.URGENT, role_request(role, self._term))

    def awaits_role(self, datapath_ids: Container[int]) -> bool:
        """Whether a connected switch of these has neither confirmed nor refused our role.

        A switch may have two connections for a while. It has confirmed our role where one of them
        has, and is awaited where none has and one has yet to answer.
        """
        masters = {peer.datapath_id for peer in self._peers.values() if peer.confirmed_us}
        return any(
            peer.datapath_id in datapath_ids
            for peer in self._peers.values()
            if not peer.refused_us and peer.datapath_id not in masters
        )

    def _refused(self, peer: _RolePeer) -> None:
        """Report once that a switch does not accept us as its master."""
        peer.refused_us, datapath_id = True, peer.datapath_id
        if datapath_id not in self._contested:
            self._contested.add(datapath_id)
            self._fabric.tell(RoleContested(f"{datapath_id:016x}"))

    def _confirmed(self, key: Hashable, peer: _RolePeer, message: bytes) -> None:
        """Tell the fabric of a switch that has confirmed us as its master."""
        reply = ROLE.read(message, HEADER.size)
        is_for_master = (reply.role, reply.generation) == (ControllerRole.MASTER, self._term)
        if self._leads and is_for_master and not peer.confirmed_us:
            peer.confirmed_us = True
            self._fabric.connected(key, peer.datapath_id, peer.address, peer.certificate)


def _says_that_we_are_slave(kind: int, message: bytes) -> bool:
    """Whether a switch reports that it has another master by now, and we are its slave."""
    if kind != MessageType.ERROR:
        return False
    error = Error.read(message)
    return (error.type, error.code) == (ErrorType.BAD_REQUEST, BadRequest.IS_SLAVE)
