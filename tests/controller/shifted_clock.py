"""The command line on a machine whose time of day is set while it runs.

argv: a file with the seconds that the time of day is ahead, and the words of the command.
"""

import sys
import time
from pathlib import Path

AHEAD, NOW = Path(sys.argv.pop(1)), time.time
time.time = lambda: NOW() + float(AHEAD.read_text())

from polarfab import cli  # noqa: E402

cli.main()
