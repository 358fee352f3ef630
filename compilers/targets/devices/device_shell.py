"""Runs commands on a device by its shell, over SSH or another command that reaches it."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10 {address}"
"""Reaches a device unless the user gives another command; it asks no questions."""
SHELL_PATIENCE = 300.0
"""Seconds that a command may take."""
END = "POLARFAB_END"
"""The line that ends a file in a script; no file has such a line."""
LAST_WORDS = 300
"""How many characters of a command's output are in a message, the last ones."""


class DeviceError(Exception):
    """A command failed on a device, or nothing reaches it."""


@dataclass(frozen=True, slots=True)
class DeviceShell:
    """The shell of a device. A command that fails, or does not end, raises a DeviceError."""

    reach: tuple[str, ...]
    """The words before a command, such as `ssh leaf7`. The command follows as one word, for a shell
    on the device."""

    def run(self, command: str, text: str = "") -> str:
        """Run a command with a text as its input; the result is what it prints."""
        try:
            # In a session of its own, so that Ctrl-C does not cut a change in half.
            done = subprocess.run(
                [*self.reach, command],
                input=text,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SHELL_PATIENCE,
                check=False,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DeviceError(f"{self.reach[0]}: {error}") from error
        if done.returncode:
            output = (done.stderr.strip() or done.stdout.strip())[-LAST_WORDS:]
            first_line = command.partition("\n")[0] or self.reach[0]
            raise DeviceError(f"{first_line}: {output or f'exit {done.returncode}'}")
        return done.stdout

    def script(self, *lines: str) -> None:
        """Run commands up to the first that fails.

        In braces, so that the shell runs none before all have arrived, and with an input of their
        own, so that no command reads the lines behind it.
        """
        self.run("sh -se", "".join(f"{line}\n" for line in ("{", *lines, "} < /dev/null")))

    def put(self, folder: str, files: Mapping[str, str], *then: str) -> None:
        """Write text files into a folder, each as a whole or not at all, then run commands."""
        place = shlex.quote(folder)
        lines = [f"mkdir -p {place}", f"cd {place}"]
        for name, text in files.items():
            quoted = shlex.quote(name)
            lines += [f"cat > {quoted}.part <<'{END}'", text.rstrip("\n"), END]
            lines.append(f"mv {quoted}.part {quoted}")
        self.script(*lines, *then)
