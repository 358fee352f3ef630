"""Send buffers of another process's packet sockets.

Open vSwitch's userspace datapath sends through one packet socket, whatever the port. What waits in
the queues of slow links counts as that socket's, and when its send buffer is full nothing more goes
out of any port. So links of limited rate need a larger one than the kernel's default.
"""

from __future__ import annotations

import ctypes
import os
import socket
from contextlib import suppress
from pathlib import Path

PIDFD_GETFD = 438
SO_SNDBUFFORCE = 32
LIBC_SOCKETS = ctypes.CDLL(None, use_errno=True)


def widen(pid: int, size: int) -> int:
    """Give every packet socket of a process a send buffer of so many bytes; how many it has.

    Raises:
        OSError: the process is gone, or the kernel refuses (pidfd_getfd(2) needs Linux 5.6).
    """
    process = os.pidfd_open(pid)
    found = 0
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                if not str(entry.readlink()).startswith("socket:"):
                    continue
                with _copy(process, int(entry.name)) as end:
                    if end.family == socket.AF_PACKET:
                        end.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, size)
                        found += 1
    finally:
        os.close(process)
    return found


def _copy(process: int, file: int) -> socket.socket:
    copied = LIBC_SOCKETS.syscall(PIDFD_GETFD, process, file, 0)
    if copied < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return socket.socket(fileno=copied)
