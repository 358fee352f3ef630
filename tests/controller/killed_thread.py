"""The command line, with a controller one of whose threads dies at SIGUSR1.

argv: the thread, ticks (it repairs) or inbox (it handles messages), and the words of the command.
"""

import signal
import sys

from controller import app, watchdog
from polarfab import cli

THREAD = {"ticks": "_ticks", "inbox": "work"}[sys.argv.pop(1)]
MADE = app.app_class
watchdog.MOST_MISSED = 20  # two seconds


def mortal(framework, hang_ups):
    """The app, with a thread that can be killed."""
    spawn, threads = framework.hub.spawn, {}

    def kept(call, *args, **kwargs):
        threads[getattr(call, "__name__", "")] = thread = spawn(call, *args, **kwargs)
        return thread

    framework.hub.spawn = kept
    signal.signal(signal.SIGUSR1, lambda *_: framework.hub.kill(threads[THREAD]))
    return MADE(framework, hang_ups)


app.app_class = mortal
cli.main()
