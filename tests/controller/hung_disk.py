"""The command line on a machine whose disk hangs at times.

argv: a file while which is there no write is ever flushed, and the words of the command.
"""

import os
import sys
import time
from pathlib import Path

HANGS, FSYNC = Path(sys.argv.pop(1)), os.fsync


def late(descriptor):
    """Flush when the disk answers."""
    while HANGS.exists():
        time.sleep(0.02)
    FSYNC(descriptor)


os.fsync = late

from polarfab import cli  # noqa: E402

cli.main()
