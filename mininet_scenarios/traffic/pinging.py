"""Echo requests with `ping` from all hosts at once, and the parser of its output."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from mininet_scenarios.scenario.engine import Progress

Spawn = Callable[..., "subprocess.Popen[str]"]
"""Starts a command inside a host: spawn(command, stdin=…, …)."""
LOOP = """while read -r count to; do
  while [ "$count" -gt 0 ] && ping -n -c 1 -W 5 "$to"; do count=$((count - 1)); done
done"""
"""A host's whole round, one process a request: with more, ping leaves before a late answer comes.

A lost packet costs five seconds, and is the last one sent to that address.
"""
PINGS_AT_ONCE = 64
"""Hosts that ping at the same time."""
ANSWER = re.compile(r"from ([0-9a-f.:]+): icmp_seq=[0-9]+ ttl=([0-9]+)")
PROGRESS_EVERY = 0.1
"""Seconds."""


@dataclass(slots=True)
class Answers:
    """What one address answered: how often, and the smallest and largest TTL of the answers."""

    count: int = 0
    lowest: int = 255
    highest: int = 0

    def add(self, time_to_live: int) -> None:
        """One more answer."""
        self.count += 1
        self.lowest = min(self.lowest, time_to_live)
        self.highest = max(self.highest, time_to_live)


def ping_all(
    rounds: Sequence[tuple[Spawn, dict[str, int]]], progress: Progress
) -> list[dict[str, Answers]]:
    """Let every host ping its addresses, so often each, and wait for all.

    Args:
        rounds: for each host how to start a command there, and its addresses with their counts.
        progress: told (answers so far, requests in all).
    """
    seen: list[dict[str, Answers]] = [{} for _ in rounds]
    total = sum(sum(wanted.values()) for _, wanted in rounds)
    with ThreadPoolExecutor(PINGS_AT_ONCE) as pool:
        tasks = [
            pool.submit(_ping_from, spawn, wanted, answers)
            for (spawn, wanted), answers in zip(rounds, seen, strict=True)
        ]
        pending = set(tasks)
        while pending:
            _, pending = wait(pending, PROGRESS_EVERY)
            progress(sum(a.count for answers in seen for a in [*answers.values()]), total)
    for task in tasks:
        task.result()
    return seen


def _ping_from(spawn: Spawn, wanted: dict[str, int], answers: dict[str, Answers]) -> None:
    process = spawn(
        ["sh", "-c", LOOP],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
    with process, process.stdin:
        process.stdin.writelines(f"{count} {to}\n" for to, count in wanted.items())
        process.stdin.close()
        read_answers(process.stdout, answers)


def read_answers(lines: Iterable[str], answers: dict[str, Answers]) -> None:
    """Add the answers in lines that ping printed."""
    for line in lines:
        if found := ANSWER.search(line):
            answers.setdefault(found[1], Answers()).add(int(found[2]))
