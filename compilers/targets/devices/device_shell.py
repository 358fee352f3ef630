"""The shell of a device: commands that run there, over SSH or whatever reaches it."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10 {address}"
"""What reaches a device unless the user says otherwise: no question asked, no long wait."""
SHELL_PATIENCE = 300.0
"""Seconds that a command may take."""
END = "POLARFAB_END"
"""The line below a file, none of its own."""
LAST_WORDS = 300
"""Characters of what a command said last, for messages."""


class DeviceError(Exception):
    """A command failed on a device, or nothing reaches it."""


@dataclass(frozen=True, slots=True)
class DeviceShell:
    """Runs commands on a device; one that fails, or does not end, raises a DeviceError.

    reach: the words before a command, such as `ssh leaf7`; the command is one word behind them,
    which a shell on the device takes.
    """

    reach: tuple[str, ...]

    def run(self, command: str, text: str = "") -> str:
        """What a command prints when it is given this text."""
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
            said = (done.stderr.strip() or done.stdout.strip())[-LAST_WORDS:]
            asked = command.partition("\n")[0] or self.reach[0]
            raise DeviceError(f"{asked}: {said or f'exit {done.returncode}'}")
        return done.stdout

    def script(self, *lines: str) -> None:
        """Run commands up to the first that fails; none before all have arrived.

        The braces see to that, and keep commands from reading those that follow.
        """
        self.run("sh -se", "".join(f"{line}\n" for line in ("{", *lines, "} < /dev/null")))

    def put(self, folder: str, files: Mapping[str, str], *then: str) -> None:
        """Write text files into a folder there, each whole or not at all, then run commands."""
        place = shlex.quote(folder)
        lines = [f"mkdir -p {place}", f"cd {place}"]
        for name, text in files.items():
            here = shlex.quote(name)
            lines += [f"cat > {here}.part <<'{END}'", text.rstrip("\n"), END]
            lines.append(f"mv {here}.part {here}")
        self.script(*lines, *then)
