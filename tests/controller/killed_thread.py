"""The command line, with a controller one of whose threads dies at SIGUSR1; at SIGUSR2 it prints
the stacks of all threads.

argv: the thread, ticks (it repairs) or inbox (it handles messages), and the words of the command.
"""

import faulthandler
import signal
import sys

from controller import app, watchdog
from polarfab import cli

THREAD = {"ticks": "_ticks", "inbox": "handle_messages"}[sys.argv.pop(1)]
MADE = app.app_class
faulthandler.register(signal.SIGUSR2)
watchdog.MOST_MISSED = 20  # two seconds


def mortal(framework, hang_ups):
    """The app, with a thread that can be killed, also before it has begun."""
    spawn, threads, signals = framework.hub.spawn, {}, []

    def kept(call, *args, **kwargs):
        threads[getattr(call, "__name__", "")] = thread = spawn(call, *args, **kwargs)
        if signals:
            kill()
        return thread

    def kill(*_):
        signals.append(THREAD)
        if THREAD in threads:
            framework.hub.kill(threads[THREAD])

    framework.hub.spawn = kept
    signal.signal(signal.SIGUSR1, kill)
    return MADE(framework, hang_ups)


app.app_class = mortal
cli.main()
