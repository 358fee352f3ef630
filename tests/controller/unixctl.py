"""What ovs-appctl tells a daemon: JSON-RPC 1.0 over a Unix socket."""

from __future__ import annotations

import json
import socket
from pathlib import Path


class Unixctl:
    """A connection with a daemon's control socket."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(30)
        self._socket.connect(str(path))

    def call(self, method: str, *words: str) -> str:
        """What a command prints."""
        request = {"id": 0, "method": method, "params": words}
        self._socket.sendall(json.dumps(request).encode())
        data = b""
        while True:
            data += self._socket.recv(1 << 20)
            try:
                answer = json.loads(data)
            except ValueError:
                continue
            assert answer["error"] is None, answer["error"]
            return str(answer["result"])

    def __enter__(self) -> Unixctl:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
