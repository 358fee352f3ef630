"""`--cli`: Mininet's prompt at a real terminal, with commands that know the fabric."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.polarfab.forked import command_line

pytestmark = pytest.mark.live
POLARFAB = Path(sys.executable).with_name("polarfab")
PROMPT = "polarfab> "


class Terminal:
    """The user's side of a terminal."""

    def __init__(self, *command):
        self.side, other = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, start_new_session=True
        )
        os.close(other)
        self.seen = ""

    def until(self, text, limit=120):
        """What is printed up to the text; the rest is for the next time."""
        end = time.monotonic() + limit
        while text not in self.seen:
            assert time.monotonic() < end, self.seen[-2000:]
            if select.select([self.side], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.side, 65536).decode(errors="replace")
                except OSError:
                    raise AssertionError(f"it was closed: {self.seen[-2000:]}") from None
        before, found, self.seen = self.seen.partition(text)
        return before + found

    def ask(self, line):
        os.write(self.side, f"{line}\n".encode())
        self.until(line)
        return self.until(PROMPT)


def test_the_prompt_knows_the_fabric(tmp_path):
    fabric = tmp_path / "fabric.yaml"
    fabric.write_text("name: lab\ntopology: {family: polarfly, q: 2}\n")
    terminal = Terminal(POLARFAB, "emulate", fabric, "--cli")
    try:
        terminal.until(PROMPT)
        assert "0 1: 1 link" in terminal.ask("path 0 1")
        assert "64 bytes from" in terminal.ask("h0 ping -c 1 h1")
        loads = terminal.ask("load")
        assert "0 → 1" in loads
        assert "\n0 of 42 pairs of switches lose packets" in terminal.ask("fail 0-1")
        assert "links" in terminal.ask("path 0 1")
        assert "100% packet loss" not in terminal.ask("h0 ping -c 5 -i 0.3 h1")
        assert "lose packets" in terminal.ask("fail 1")
        assert "100% packet loss" in terminal.ask("h0 ping -c 1 -W 1 h1")
        assert "lose packets" in terminal.ask("heal 1")
        assert "0 of 42 pairs" in terminal.ask("heal 0-1")
        assert "1 received" in terminal.ask("h0 ping -c 1 h1")
        assert "required a node, or a link" in terminal.ask("fail 0-99")
        assert "0% dropped (42/42 received)" in terminal.ask("pingall")
        assert "7 at home" in terminal.ask("sh echo $((3 + 4)) at home")
        assert "n_packets=" in terminal.ask("dpctl dump-flows")
        assert "error reading file nothing" in terminal.ask("source nothing")
        os.write(terminal.side, b"h0 ping h1\n")
        terminal.until("icmp_seq=2")
        terminal.process.send_signal(signal.SIGINT)
        terminal.until(PROMPT)
        os.write(terminal.side, b"exit\n")
        assert "passed" in terminal.until("passed")
        assert terminal.process.wait(60) == 0
    finally:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.side)


def test_without_a_terminal_it_is_refused():
    code, _, error = command_line()("emulate", "first-light-q3", "--cli")
    assert code == 2
    assert "--cli: required a terminal on standard input" in error


def test_an_engine_without_a_prompt_is_refused():
    """Mininet ran in place of the engine that was named."""
    code, _, error = command_line()("emulate", "first-light-q3", "--cli", "--engine", "model")
    assert code == 2
    assert "--engine: required mininet with --cli" in error
