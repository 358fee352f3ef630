"""An inner process whose processes write to its folder, and which tells, all the time."""

import subprocess

from mininet_scenarios.engines import inner_child

FOREVER = 'n=0; while :; do n=$((n + 1)); : > "$0/$$-$n"; sleep 0.002; done'


class Writers:
    def __init__(self, setup, progress):
        self.work, self.progress = setup.work, progress

    def start(self):
        for _ in range(2):
            subprocess.Popen(["sh", "-c", FOREVER, self.work], stderr=subprocess.DEVNULL)

    def tell(self):
        while True:
            self.progress("more")


if __name__ == "__main__":
    inner_child.serve(Writers)
