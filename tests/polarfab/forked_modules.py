"""Modules and scripts of ours in copies of this process, in the place of new Pythons.

`tests.polarfab.forked_process` uses it: an emulation's inner process, its controller and its probes
do not import everything again. Namespaces are those of `unshare`, by the same system calls.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
import traceback
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from mininet_scenarios.ovs.openvswitch import NAMESPACES

COPIED = "mininet_scenarios", "polarfab"
"""The packages whose modules are run in copies."""
CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


class Popen(subprocess.Popen[Any]):
    """Starts `PYTHON -P -m MODULE` of ours, in namespaces or not, as a copy; all else as ever."""

    def __init__(self, command: Any, *rest: Any, **options: Any) -> None:
        words = [str(word) for word in command] if isinstance(command, list | tuple) else []
        prefix = list(NAMESPACES) if words[: len(NAMESPACES)] == list(NAMESPACES) else []
        python, *arguments = words[len(prefix) :] or [""]
        if python == sys.executable and arguments[:2] == ["-P", "-m"]:
            module = arguments[2]
            if module.split(".")[0] in COPIED:
                sys.stdout.flush()
                sys.stderr.flush()
                environment = options.get("env") or dict(os.environ)
                apart = bool(prefix)
                options["preexec_fn"] = partial(
                    _become, module, arguments[3:], environment, apart=apart
                )
        super().__init__(command, *rest, **options)


def _become(module: str, words: list[str], environment: dict[str, str], apart: bool) -> None:
    """Run a module in this process, which `subprocess` has just made, and end it."""
    gc.freeze()  # what is closed below stays open for those who never hear of it
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # also what `subprocess` waits for
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python starts; `subprocess` restores it
    os.environ.clear()
    os.environ.update(environment)
    spec = find_spec("polarfab.__main__" if module == "polarfab" else module)
    assert spec is not None
    assert spec.origin is not None
    code = spec.loader.get_code(spec.name)  # type: ignore[union-attr]
    end(code, spec.origin, words, apart)


def end(code: CodeType, file: str, words: list[str], apart: bool) -> None:
    """Run the code of a program in this process, and end it.

    Args:
        code: what is run as `__main__`.
        file: its file.
        words: its arguments.
        apart: whether it has network, process and mount namespaces of its own.
    """
    status = 1
    try:
        if apart:
            enter_namespaces()
        sys.argv, main = [file, *words], ModuleType("__main__")
        sys.orig_argv = [sys.executable, *sys.argv]
        main.__file__, sys.modules["__main__"] = file, main
        exec(code, vars(main))  # noqa: S102 - of our own
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def script_code(script: str) -> CodeType:
    """The code of a script, which is a file."""
    return compile(Path(script).read_text(encoding="utf-8"), script, "exec")


def enter_namespaces() -> None:
    """Go on as process 1 of new namespaces; this process waits for it, and ends as it does."""
    _called("unshare", CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS)
    _called("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    if inner := os.fork():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        _, status = os.waitpid(inner, 0)
        code = os.waitstatus_to_exitcode(status)
        os._exit(code if code >= 0 else 128 - code)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    _called("mount", b"proc", b"/proc", b"proc", MS_NOSUID | MS_NOEXEC | MS_NODEV, None)


def _called(name: str, *arguments: Any) -> None:
    """Make a system call."""
    if getattr(LIBC, name)(*arguments):
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
