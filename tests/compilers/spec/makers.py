"""What several test modules of this folder and of others use."""

import copy
import random
from typing import Any

import yaml

NASTY: list[Any] = [
    *(None, True, 0, -1, 7.0, 6, 2**31, 2**64, 10**30, float("nan"), float("inf")),
    *("", "-", "..", "a/b", "{0.__class__}", "{}", "\0", "\u202e", "\N{PILE OF POO}", "x" * 999),
    *("0x7001", "n02", "fd00::/8", "10.0.0.0/33", "fe80::1%eth0", "52:54:00:12:34:56", b"\xff"),
    *([], {}, [[]], {"a": {}}, [None], {None: None}, {"ports": {"ports": []}}),
]


SPICE = [
    b"\t",
    b"\n",
    b": ",
    b"- ",
    b"&a ",
    b"*a",
    b"!!int ",
    b"{",
    b"]",
    b"'",
    b"\xff",
    b"\0",
    b"<<: ",
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value below `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for part, inner in items:
        found.append((*path, part))
        if isinstance(inner, dict | list):
            found += places(inner, (*path, part))
    return found


def mutated_tree(data: Any, rng: random.Random) -> bytes:
    """The document with some values replaced, removed, or their keys misspelt."""
    data = copy.deepcopy(data)
    for _ in range(rng.randint(1, 3)):
        if not (left := places(data)):
            break
        *path, last = rng.choice(left)
        parent = data
        for part in path:
            parent = parent[part]
        action = rng.random()
        if action < 0.6:
            parent[last] = copy.deepcopy(rng.choice(NASTY))
        elif action < 0.8:
            del parent[last]
        elif isinstance(parent, dict):
            parent[rng.choice(["nmae", "", "x", 7, f"{last}s"])] = parent.pop(last)
        else:
            parent.append(parent[last])
    return yaml.safe_dump(data, sort_keys=False).encode()


def mutated_bytes(text: bytes, rng: random.Random) -> bytes:
    """The text with some bytes cut, doubled, changed or spiced."""
    for _ in range(rng.randint(1, 4)):
        if not text:
            break
        at, length = rng.randrange(len(text)), rng.choice([1, 1, 3, 40])
        cut = text[at : at + length]
        new = rng.choice([b"", cut + cut, bytes([rng.randrange(256)]), rng.choice(SPICE) + cut])
        text = text[:at] + new + text[at + length :]
    return text
