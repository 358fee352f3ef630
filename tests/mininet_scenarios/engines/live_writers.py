"""An inner process whose own processes write files to its folder without a pause."""

import subprocess

from mininet_scenarios.engines import inner_child

FOREVER = 'n=0; while :; do n=$((n + 1)); : > "$0/$$-$n"; done'


class Writers:
    def __init__(self, setup, _progress):
        self.work = setup.work

    def start(self):
        for _ in range(4):
            subprocess.Popen(["sh", "-c", FOREVER, self.work])


if __name__ == "__main__":
    inner_child.serve(Writers)
