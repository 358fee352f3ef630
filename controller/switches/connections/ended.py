"""Finds connections that their peers have ended before they were accepted.

The listeners for switches and for HTTP clients close these at once. A flood of them would else keep
those who wait behind them in the backlog.
"""

from __future__ import annotations

import socket


def is_ended(sock: socket.socket) -> bool:
    """Whether the peer of a connection that was just accepted has ended or reset it.

    A peer that has sent something and then ended its side alone waits for an answer.

    Args:
        sock: the system's socket, not a green one.
    """
    if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):  # also a reset after the first bytes
        return True
    try:
        return not sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
