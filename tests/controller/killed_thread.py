"""A controller one of whose threads, that repairs or that handles messages, dies at SIGUSR1.

BUILD FRAMEWORK PORT STATUS-FILE ticks|inbox
"""

import signal
import sys
from pathlib import Path

from controller import app, server
from controller.settings import Address, Settings
from controller.switches import framework
from controller.switches.current import read_build

BUILD, FRAMEWORK, PORT, STATUS_FILE, THREAD = sys.argv[1:]
MADE = app.app_class


def spoiled(used):
    """The app, with a thread that can be killed."""
    spawn, threads = used.hub.spawn, {}

    def kept(call, *args, **kwargs):
        threads[getattr(call, "__name__", "")] = thread = spawn(call, *args, **kwargs)
        return thread

    used.hub.spawn = kept
    name = {"ticks": "_ticks", "inbox": "work"}[THREAD]
    signal.signal(signal.SIGUSR1, lambda *_: used.hub.kill(threads[name]))
    return MADE(used)


server.app_class = spoiled
server.serve(
    framework.load(FRAMEWORK),
    lambda: read_build(Path(BUILD)),
    Settings(Address("127.0.0.1", int(PORT), "--listen"), status_file=Path(STATUS_FILE)),
    lambda line: print(line, flush=True),
    Path(BUILD),
)
