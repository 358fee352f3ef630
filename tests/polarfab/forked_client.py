"""Ask the process of `tests.polarfab.forked` for a call. Also a program: `PLACE WORD…`.

It imports next to nothing: shells of tests run it in the place of `polarfab`. The process id of the
call is written to the file that the variable CALL_PID names, if it is set.
"""

from __future__ import annotations

import json
import os
import socket
import sys


def begin(
    place: str,
    words: list[str],
    files: list[int],
    environment: dict[str, str],
    cwd: str,
    patience: int = 0,
    **more: object,
) -> socket.socket:
    """Begin a call.

    Args:
        place: the socket of the process that is copied.
        words: the words after `polarfab`.
        files: standard input, output and errors.
        environment: what the call has in its environment.
        cwd: its working directory.
        patience: seconds after which it is killed; 0: it is not.
        more: what `tests.polarfab.forked_process` knows besides.

    Returns:
        A socket that says the process id of the call, and its exit code when it has ended.
    """
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.connect(place)
    call = {"words": words, "environment": environment, "cwd": cwd, "patience": patience, **more}
    with open("/proc/thread-self/ns/net") as network:  # noqa: PTH123 - pathlib takes 10 ms
        socket.send_fds(link, [json.dumps(call).encode()], [*files, network.fileno()])
    return link


if __name__ == "__main__":
    with begin(sys.argv[1], sys.argv[2:], [0, 1, 2], dict(os.environ), os.getcwd()) as link:  # noqa: PTH109
        pid = link.recv(64)
        if "CALL_PID" in os.environ:
            with open(os.environ["CALL_PID"], "wb") as file:  # noqa: PTH123 - as above
                file.write(pid)
        code = int(link.recv(64))
    sys.exit(code if code >= 0 else 128 - code)
