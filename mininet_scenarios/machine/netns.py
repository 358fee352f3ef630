"""Sockets and settings in the network namespaces of hosts."""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000
SIOCETHTOOL = 0x8946
OFFLOADS = {"transmit checksums": 0x17, "TCP segmentation": 0x1F, "generic segmentation": 0x24}
"""The ethtool commands (linux/ethtool.h) that set what a device does for the kernel."""
LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def entered(pid: int) -> Iterator[None]:
    """In the network namespace of a process; sockets made there stay there. One thread at a time.

    Raises:
        OSError: it is gone, or we may not.
    """
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        _enter(f"/proc/{pid}/ns/net")
        try:
            yield
        finally:
            _enter(f"/proc/self/fd/{home}")
    finally:
        os.close(home)


def _enter(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        if LIBC.setns(file, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
    finally:
        os.close(file)


def no_offloads(interface: str) -> None:
    """Let the kernel fill in checksums and cut segments itself, in this network namespace.

    A veth pair leaves both to a device that is not there, and Open vSwitch's userspace datapath
    passes packets on as they are: TCP and UDP would never be accepted.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        for command in OFFLOADS.values():
            value = array.array("B", struct.pack("II", command, 0))
            address = value.buffer_info()[0]
            request = struct.pack("16sP", interface.encode(), address)
            fcntl.ioctl(end, SIOCETHTOOL, request)
