"""A controller that has restarted itself: what keeps it from starting does not end it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from controller import restart
from polarfab.fabric import Fabric
from tests.controller.makers import free_port

POLARFAB = Path(sys.executable).with_name("polarfab")


def test_a_mistake_in_a_file_ends_no_controller_that_has_restarted_itself(tmp_path, monkeypatch):
    """A leader whose lease had ended restarted, and ended: a token file was only half written."""
    monkeypatch.setattr(os, "execv", lambda *_: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setenv("POLARFAB_CONTROLLER_RESTARTED", "")  # so that it is as before afterwards
    monkeypatch.delenv("POLARFAB_CONTROLLER_RESTARTED")
    assert not restart.was_restarted()
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": 2}}
    Fabric.from_spec(spec).save(tmp_path / "build").verify()
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    words = (
        "controller",
        tmp_path / "build",
        "--listen",
        f"127.0.0.1:{free_port()}",
        "--http",
        "none",
    )
    command = [POLARFAB, *words, "--token-file", tokens]
    started = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert started.returncode == 2, started.stderr
    restart.restart()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert "at least one token" in process.stderr.readline()
        process.terminate()
        assert process.wait(60) in (-signal.SIGTERM, 128 + signal.SIGTERM)
