"""Runs commands on a device by its shell, over SSH or another command that reaches it.

The devices of systems that have a shell run the lines of a push by a `DeviceShell`. It also holds
the lock that keeps two pushes from one device.
"""

from __future__ import annotations

import select
import shlex
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10 {address}"
"""The command that reaches a device unless the user gives another; it asks no questions."""
SHELL_PATIENCE = 300.0
"""Seconds after which a command is given up."""
END = "POLARFAB_END"
"""The line that ends a file within a script; no file has such a line."""
LOCKED = "POLARFAB_HELD"
"""The line that a shell prints when it holds the lock."""
LOCK_REFUSED = 75
"""The exit status of a shell if another shell holds the lock."""
LOCK_PATIENCE = 10.0
"""Seconds for the shell that holds a lock to end."""
LOCK_SCRIPT = f"""mkdir -p {{folder}} && exec 9>>{{file}} || exit 1
flock -n 9 || {{{{ cat {{file}}; exit {LOCK_REFUSED}; }}}}
echo {{owner}} > {{file}}; echo {LOCKED}; exec cat > /dev/null"""
"""The script that holds a lock until its input ends. If another shell has the lock, it prints the
owner and fails. Its fields are `folder`, `file` and `owner`."""
LONGEST_OUTPUT = 300
"""How many characters of a command's output are in a message: the last ones."""


class DeviceError(Exception):
    """A command failed on a device, or nothing reaches it."""


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock on a device, which a shell there holds while this process runs."""

    process: subprocess.Popen[str]
    """The command that reaches the shell."""

    def release(self) -> None:
        """Release the lock: the shell ends with its input."""
        with suppress(OSError, subprocess.TimeoutExpired):
            self.process.communicate(timeout=LOCK_PATIENCE)
        self.process.kill()
        self.process.wait()


@dataclass(frozen=True, slots=True)
class DeviceShell:
    """The shell of a device. A command that fails, or does not end, raises a DeviceError."""

    reach: tuple[str, ...]
    """The words before a command, such as `ssh leaf7`. The command follows as one word, for a shell
    on the device."""

    def run(self, command: str, text: str = "") -> str:
        """The output of a command that gets a text as its input."""
        try:
            # In a session of its own, so that Ctrl-C does not cut a change in half.
            process = subprocess.run(
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
        if process.returncode:
            output = (process.stderr.strip() or process.stdout.strip())[-LONGEST_OUTPUT:]
            first_line = command.partition("\n")[0] or self.reach[0]
            raise DeviceError(f"{first_line}: {output or f'exit {process.returncode}'}")
        return process.stdout

    def lock(self, folder: str, owner: str) -> HeldLock:
        """Lock a folder against other pushes, until the lock is released or this program ends.

        Args:
            folder: the folder on the device.
            owner: the text that another push prints about this one.

        Raises:
            DeviceError: another push holds the lock, or the device does not answer.
        """
        command = LOCK_SCRIPT.format(
            folder=shlex.quote(folder),
            file=shlex.quote(f"{folder}/push.lock"),
            owner=shlex.quote(owner),
        )
        try:
            process = subprocess.Popen(
                [*self.reach, command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise DeviceError(f"{self.reach[0]}: {error}") from error
        lock = HeldLock(process)
        if process.stdout is None or not select.select([process.stdout], [], [], SHELL_PATIENCE)[0]:
            lock.release()
            raise DeviceError(f"{self.reach[0]}: no answer in {SHELL_PATIENCE:.0f} s")
        first_line = process.stdout.readline().strip()
        if first_line == LOCKED:
            return lock
        lock.release()
        if process.returncode != LOCK_REFUSED:
            raise DeviceError(f"{self.reach[0]}: {first_line or f'exit {process.returncode}'}")
        required = "no other push to this switch at the same time"
        raise DeviceError(f"required {required}, given one by {first_line}; wait for its end")

    def script(self, *lines: str) -> None:
        """Run commands up to the first that fails.

        Braces around them keep the shell from running a command before all have arrived. An empty
        input keeps a command from reading the lines behind it.
        """
        self.run("sh -se", "".join(f"{line}\n" for line in ("{", *lines, "} < /dev/null")))

    def put(self, folder: str, files: Mapping[str, str], *commands: str) -> None:
        """Write files into a folder, each as a whole or not at all, then run commands there.

        Args:
            folder: the folder on the device.
            files: the texts by file name.
            commands: the commands.
        """
        quoted_folder = shlex.quote(folder)
        lines = [f"mkdir -p {quoted_folder}", f"cd {quoted_folder}"]
        for name, text in files.items():
            quoted = shlex.quote(name)
            lines += [f"cat > {quoted}.part <<'{END}'", text.rstrip("\n"), END]
            lines.append(f"mv {quoted}.part {quoted}")
        self.script(*lines, *commands)
