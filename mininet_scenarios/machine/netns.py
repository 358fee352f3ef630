"""Processes of our own modules; sockets and settings in other network namespaces and processes.

The engines with real packets use it (`mininet_scenarios.engines`): to start their inner process and
their probes, to run commands, and to open sockets in the namespaces of hosts.
"""

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
"""The flag of setns(2) for a network namespace."""
SIOCETHTOOL = 0x8946
"""The ioctl(2) that carries an ethtool command."""
PIDFD_GETFD = 438
"""The number of the system call pidfd_getfd(2)."""
SO_SNDBUFFORCE = 32
"""The option of socket(7) that sets a send buffer beyond the system's limit."""
OFFLOADS = {"transmit checksums": 0x17, "TCP segmentation": 0x1F, "generic segmentation": 0x24}
"""The ethtool commands (linux/ethtool.h) that set what a device does for the kernel."""
POLL = 0.02
"""Seconds between two checks of a condition that is waited for."""
REST = 2
"""How many times as long as a check took nothing is done before the next, if that is longer: checks
that start programs would keep a core busy, which what is waited for needs as well."""
LIBC = ctypes.CDLL(None, use_errno=True)
"""The C library, for system calls that Python lacks."""


def module_process(
    module: str, prefix: Sequence[str] = (), **options: Any
) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start a module of polarfab as a process, with a connection to it as its standard input.

    Args:
        module: the name of the module.
        prefix: the words before the command.
        options: of `subprocess.Popen`.

    Returns:
        The process, and our end of the connection.
    """
    ours, theirs = Pipe()
    command = [*prefix, sys.executable, "-P", "-m", module]
    with theirs:
        return subprocess.Popen(command, stdin=theirs.fileno(), **options), ours


def run(*command: str, text: str | None = None, check: bool = True) -> str:
    """Run a command, and return what it prints.

    Args:
        command: the command's words.
        text: what the command reads from its standard input.
        check: whether a failure of the command is an error.

    Raises:
        EngineError: the command failed, and `check` is set.
    """
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise EngineError(f"{' '.join(command)}: {done.stderr[-1500:]}{done.stdout[-500:]}")
    return done.stdout


def batch(lines: Iterable[str], *command: str) -> None:
    """Let `ip -batch` carry out lines, or another command that takes a batch, such as `tc`.

    Raises:
        EngineError: the kernel refused a line.
    """
    run(*(command or ("ip",)), "-batch", "-", text="\n".join(lines))


def until(condition: Callable[[], bool], words: str, patience: float) -> None:
    """Wait until a condition is true.

    Args:
        condition: says whether it is true.
        words: the condition in words.
        patience: the most seconds to wait.

    Raises:
        EngineError: the condition is not true after `patience` seconds.
    """
    began = time.monotonic()
    limit = began + patience
    while not condition():
        now = time.monotonic()
        if now > limit:
            raise EngineError(f"{words}: not so after {patience:g} s")
        time.sleep(max(POLL, REST * (now - began)))
        began = time.monotonic()


@contextmanager
def entered(pid: int) -> Iterator[None]:
    """Enter the network namespace of a process, in this thread only, until the context's end.

    A socket that is made meanwhile stays in that namespace.

    Raises:
        OSError: the process has ended, or the kernel refuses.
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
    """Let this thread enter the network namespace of a file of /proc."""
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
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for command in OFFLOADS.values():
            # struct ethtool_value: the command, and 0 for off. struct ifreq: the interface's name
            # and a pointer to the first.
            value = array.array("B", struct.pack("II", command, 0))
            address, _ = value.buffer_info()
            request = struct.pack("16sP", interface.encode(), address)
            fcntl.ioctl(sock, SIOCETHTOOL, request)


def widen_send_buffers(pid: int, size: int) -> int:
    """Give every packet socket of a process a send buffer of so many bytes.

    Open vSwitch's userspace datapath sends through one packet socket, whatever the port. Packets in
    the queues of slow links fill this socket's send buffer. When the buffer is full, no port sends
    any more. So links of limited rate need a larger buffer than the kernel's default.

    Returns:
        How many packet sockets the process has.

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
                with socket.socket(fileno=copied) as sock:
                    if sock.family == socket.AF_PACKET:
                        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, size)
                        sockets += 1
    finally:
        os.close(process)
    return sockets
