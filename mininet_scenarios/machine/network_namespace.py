"""A network namespace of a switch or a host, and commands that run in it.

`engines.routers` makes a `NetworkNamespace` for each switch and each host of a network of routers.
The module `netns` is about the namespaces of the whole emulation, in which polarfab itself runs.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from mininet_scenarios.machine.netns import run


class NetworkNamespace:
    """A network namespace, which a process of its own keeps open while polarfab runs."""

    def __init__(self) -> None:
        command = ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        if self.process.stdout is None:
            raise ValueError("a process without standard output")
        self.process.stdout.readline()  # the shell has started, so the namespace is there
        self.pid = self.process.pid
        self.command_prefix = ["nsenter", "-t", str(self.pid), "-n"]
        """The words before a command that is to run in the namespace."""

    def run(self, *command: str, **options: Any) -> str:
        """Run a command in the namespace, and return what it prints."""
        return run(*self.command_prefix, *command, **options)

    def read(self, file: str) -> list[list[str]]:
        """The lines of a file of the namespace's /proc/net, such as `route`, each as its words."""
        lines = Path(f"/proc/{self.pid}/net/{file}").read_text(encoding="ascii").splitlines()
        return [line.split() for line in lines]

    def spawn(self, command: list[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a command in the namespace, and do not wait for it."""
        return subprocess.Popen([*self.command_prefix, *command], **options)
