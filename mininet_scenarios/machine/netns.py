"""Processes of our own modules; sockets and settings in other network namespaces and processes."""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from mininet_scenarios.scenario.engine import EngineError

CLONE_NEWNET = 0x40000000
SIOCETHTOOL = 0x8946
PIDFD_GETFD = 438
SO_SNDBUFFORCE = 32
OFFLOADS = {"transmit checksums": 0x17, "TCP segmentation": 0x1F, "generic segmentation": 0x24}
"""The ethtool commands (linux/ethtool.h) that set what a device does for the kernel."""
POLL = 0.02
"""Seconds between two looks at what is waited for."""
LIBC = ctypes.CDLL(None, use_errno=True)


def module_process(
    module: str, prefix: Sequence[str] = (), **options: Any
) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start a module of ours as a process, with a connection to it as its standard input.

    prefix: the words before the command. options: of `subprocess.Popen`.
    """
    ours, theirs = Pipe()
    command = [*prefix, sys.executable, "-P", "-m", module]
    with theirs:
        return subprocess.Popen(command, stdin=theirs.fileno(), **options), ours


def run(*command: str, text: str | None = None, check: bool = True) -> str:
    """What a command prints.

    Raises:
        EngineError: it failed, unless that is not to be checked.
    """
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise EngineError(f"{' '.join(command)}: {done.stderr[-1500:]}{done.stdout[-500:]}")
    return done.stdout


def batch(lines: Iterable[str], *command: str) -> None:
    """Let `ip -batch` do these lines, or another command that takes them.

    Raises:
        EngineError: the kernel refused one.
    """
    run(*(command or ("ip",)), "-batch", "-", text="\n".join(lines))


def until(true: Callable[[], bool], what: str, patience: float) -> None:
    """Wait until something is true.

    Raises:
        EngineError: it is not, after `patience` seconds.
    """
    limit = time.monotonic() + patience
    while not true():
        if time.monotonic() > limit:
            raise EngineError(f"{what}: not so after {patience:g} s")
        time.sleep(POLL)


@contextmanager
def entered(pid: int) -> Iterator[None]:
    """Enter the network namespace of a process; sockets made there stay there. For one thread.

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


def widen(pid: int, size: int) -> int:
    """Give every packet socket of a process a send buffer of so many bytes; how many it has.

    Open vSwitch's userspace datapath sends through one packet socket, whatever the port. What waits
    in the queues of slow links counts as that socket's, and when its send buffer is full nothing
    more goes out of any port: links of limited rate need a larger one than the kernel's default.

    Raises:
        OSError: the process is gone, or the kernel refuses (pidfd_getfd(2) needs Linux 5.6).
    """
    process = os.pidfd_open(pid)
    sockets = 0
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                if not str(entry.readlink()).startswith("socket:"):
                    continue
                copied = LIBC.syscall(PIDFD_GETFD, process, int(entry.name), 0)
                if copied < 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
                with socket.socket(fileno=copied) as end:
                    if end.family == socket.AF_PACKET:
                        end.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, size)
                        sockets += 1
    finally:
        os.close(process)
    return sockets
