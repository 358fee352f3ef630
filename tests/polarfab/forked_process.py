"""The process that `tests.polarfab.forked` copies. Its argument is the socket for calls."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

OFTEN = (
    "compilers.pipeline",
    "compilers.proof.explanation",
    "compilers.proof.verification",
    "compilers.readers.grammar.text_engine",
    "compilers.readers.openflow.ovs_reader",
    "compilers.tables.folders.build_folder",
    "compilers.targets.openflow.flow_tables",
    "controller.composition",
    "mininet_scenarios.engines.fabric_child",
    "mininet_scenarios.engines.mininet_child",
    "mininet_scenarios.engines.routed_child",
    "mininet_scenarios.run.emulation",
    "os_ken.ofproto.ofproto_protocol",
    "oslo_config.cfg",
    "polarfab.cli",
    "polarfab.fabric",
    "polarfab.measures",
    "ryu.ofproto.ofproto_protocol",
)
"""Modules that most verbs and controllers import when they are called."""
LARGEST_CALL = 1 << 18
CLONE_NEWNET = 0x40000000


def serve(place: str) -> None:
    """Run a copy of this process for each call, until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    del sys.path[0]  # the folder of this file
    from polarfab.verb_list import SECTIONS, verb

    for section in SECTIONS:
        for name in section.verbs:
            verb(name)
    for name in OFTEN:
        with suppress(ModuleNotFoundError):  # an extra that is not installed
            import_module(name)
    gc.freeze()  # so that looking for garbage touches no memory that copies share
    calls = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    calls.bind(f"{place}.new")
    calls.listen(64)
    Path(f"{place}.new").rename(place)  # who finds it finds one that listens
    print("ready", flush=True)
    watched = 0
    while calls in select.select([calls, sys.stdin], [], [])[0]:
        link, _ = calls.accept()
        if not os.fork():
            calls.close()
            watch(link)
        link.close()
        watched += 1
        while watched and os.waitpid(-1, os.WNOHANG)[0]:
            watched -= 1
    for _ in range(watched):
        os.wait()


def watch(link: socket.socket) -> None:
    """Run the call that a link asks for in a copy, and say its number and how it ends."""
    message, files, *_ = socket.recv_fds(link, LARGEST_CALL, 4)
    pid = os.fork()
    if not pid:
        link.close()
        run(json.loads(message), files)
    for file in (0, 1, *files):
        os.close(file)
    with suppress(OSError):  # who asked has ended
        link.send(f"{pid}".encode())
    _, status = os.waitpid(pid, 0)
    with suppress(OSError):
        link.send(f"{os.waitstatus_to_exitcode(status)}".encode())
    os._exit(0)


def run(call: dict[str, Any], files: list[int]) -> None:
    """Run the command line, or a script, in this process, and end it."""
    from polarfab.__main__ import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(call["patience"])
    network = files.pop()
    if os.fstat(network).st_ino != Path("/proc/self/ns/net").stat().st_ino:
        assert ctypes.CDLL(None).setns(network, CLONE_NEWNET) == 0
    os.environ.clear()
    os.environ.update(call["environment"])
    os.chdir(call["cwd"])
    sites = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [site for site in sites if site and site not in sys.path]
    sys.argv = ["polarfab", *call["words"]]
    sys.orig_argv = [sys.executable, "-m", *sys.argv]
    sys.stdin.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
    for file in (*files, network):
        os.close(file)
    sys.stdin = os.fdopen(0)
    is_unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    # `write_through` would still leave what is printed in the binary file's buffer.
    sys.stdout.reconfigure(line_buffering=is_unbuffered)  # type: ignore[union-attr]
    if call.get("copies"):
        from tests.polarfab import forked_modules  # a checkout may be one without tests

        subprocess.Popen = forked_modules.Popen  # type: ignore[assignment, misc]
        if script := call.get("script"):
            os.nice(call["nice"])
            source = forked_modules.script_code(script)
            forked_modules.end(source, script, call["words"], call.get("apart", True))
    code = 1
    try:
        main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
