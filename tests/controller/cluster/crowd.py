"""Peers that should not be there: idle ones, some that take a switch's datapath id, thieves."""

from __future__ import annotations

import socket
import ssl
import struct
from contextlib import suppress
from functools import cache
from pathlib import Path

import trustme

HELLO, ECHO_REQUEST, FEATURES_REQUEST, FEATURES_REPLY = 0, 2, 5, 6
NAMES = "{}.lab.example"
PATIENCE = 30.0
"""Seconds until a thief has been sent away."""


class Papers:
    """Certificates of one authority: the controller's, in files, and those of nodes."""

    def __init__(self, work: Path) -> None:
        self._signer = trustme.CA()
        self.authority, self._ours = work / "authority.pem", work / "ours.pem"
        self._signer.cert_pem.write_to_path(self.authority)
        issued = self._signer.issue_cert("ours.example", "127.0.0.1")
        issued.private_key_and_cert_chain_pem.write_to_path(self._ours)
        self.of = cache(self._of)

    @property
    def options(self) -> list[str | Path]:
        """Those of `polarfab controller`."""
        files = ["--tls-key", self._ours, "--tls-cert", self._ours, "--tls-ca", self.authority]
        return [*files, "--tls-names", NAMES.format("{node}")]

    def _of(self, *nodes: int) -> ssl.SSLContext:
        """A client whose certificate names these nodes."""
        context = ssl.create_default_context(cafile=self.authority)
        self._signer.issue_cert(*map(NAMES.format, nodes)).configure_cert(context)
        return context


class Crowd:
    """Peers of one controller, until they leave."""

    def __init__(self, port: int, papers: Papers) -> None:
        self._port, self._papers = port, papers
        self._peers: list[socket.socket] = []

    def idle(self, count: int) -> None:
        """Connect so often, and say nothing."""
        for _ in range(count):
            self._come()

    def impersonate(self, datapath_id: int, node: int) -> None:
        """Say that we are this switch, with a certificate of its node, and nothing else."""
        self._name(datapath_id, node)

    def steal(self, datapath_id: int, node: int) -> bool:
        """Say that we are this switch, with a certificate of another node.

        Returns whether we were sent away; we are told nothing before.
        """
        peer, heard = self._name(datapath_id, node), b""
        if peer is None:
            return False  # the controller is away
        try:
            while data := peer.recv(1 << 16):
                heard += data
        except TimeoutError as error:
            raise AssertionError("a thief may stay") from error
        except OSError:
            pass  # the controller was killed, or did not wait for us
        while heard:
            assert heard[1] in (HELLO, ECHO_REQUEST, FEATURES_REQUEST), heard
            heard = heard[int.from_bytes(heard[2:4], "big") :]
        return True

    def leave(self) -> None:
        """All of them end."""
        for peer in self._peers:
            peer.close()
        self._peers.clear()

    def _name(self, datapath_id: int, node: int) -> socket.socket | None:
        body = struct.pack("!QIBBxxII", datapath_id, 0, 254, 0, 0, 0)
        hello = struct.pack("!BBHI", 4, HELLO, 8, 1)
        reply = struct.pack("!BBHI", 4, FEATURES_REPLY, 8 + len(body), 2) + body
        with suppress(OSError):
            if peer := self._come():
                context = self._papers.of(node)
                peer = context.wrap_socket(peer, server_hostname="ours.example")
                self._peers[-1] = peer
                peer.sendall(hello + reply)
                return peer
        return None

    def _come(self) -> socket.socket | None:
        with suppress(OSError):  # the controller may be away
            self._peers.append(socket.create_connection(("127.0.0.1", self._port), PATIENCE))
            return self._peers[-1]
        return None
