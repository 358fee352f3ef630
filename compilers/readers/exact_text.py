"""Text as devices read it, character by character.

Python reads more than they do: `int` takes digits of all scripts, `017`, `+5` and `1_000`, which a
device reads as 15 or not at all; `strip` and `split` take no-break spaces for blanks; `splitlines`
ends a line at eleven characters; reading a file as text hides carriage returns. Here only a blank
and a tab are blank, `\\n` alone ends a line, and a number is written without a sign and without
zeros before it. Other characters than printable ASCII are *strange*: nothing here writes them, and
devices differ in what they do with them.
"""

from __future__ import annotations

import re
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_interface,
    ip_network,
)
from pathlib import Path

BLANKS = " \t"
NUMBER = re.compile(r"0|[1-9][0-9]{0,99}")
STRANGE = re.compile(r"[^\t\n\x20-\x7e]")
WORD = re.compile(r"[^ \t]+")
ADDRESS = re.compile(r"[0-9A-Fa-f.:]+(?:/(?:0|[1-9][0-9]{0,2}))?")
"""An address, perhaps with a length; what Python takes besides, devices may read otherwise."""


def read_exact(file: Path) -> str:
    """The text of a file with all its characters; bytes that are no UTF-8 are strange ones.

    Raises:
        OSError: it cannot be read.
    """
    return file.read_bytes().decode("utf-8", "replace")


def exact_lines(text: str) -> list[str]:
    """The lines of a text, without their ends."""
    parts = text.split("\n")
    return parts if parts[-1] else parts[:-1]


def bare(text: str) -> str:
    """A text without the blanks around it."""
    return text.strip(BLANKS)


def indentation(line: str) -> int:
    """How many blanks a line begins with."""
    return len(line) - len(line.lstrip(BLANKS))


def exact_words(text: str) -> list[str]:
    """What is between the blanks of a text."""
    return WORD.findall(text)


def is_number(text: str) -> bool:
    """Whether a text is a number that every device reads alike."""
    return NUMBER.fullmatch(text) is not None


def exact_number(text: str) -> int:
    """A number.

    Raises:
        ValueError: the text is none.
    """
    if not is_number(text):
        raise ValueError(f"{visible(text)}, which is no number")
    return int(text)


def strange(text: str) -> re.Match[str] | None:
    """The first strange character of a text."""
    return STRANGE.search(text)


def strange_line(text: str) -> int:
    """The line of the first strange character, from 1; 0 where there is none."""
    found = strange(text)
    return text.count("\n", 0, found.start()) + 1 if found else 0


def visible(text: str) -> str:
    """A text in which strange characters are written as escapes: `\\u00a0`."""
    return STRANGE.sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    return f"\\x{ord(character):02x}" if ord(character) < 128 else ascii(character)[1:-1]


def exact_address(text: str) -> IPv4Address | IPv6Address:
    """An address.

    Raises:
        ValueError: it is none.
    """
    return ip_address(_plain(text))


def exact_network(text: str) -> IPv4Network | IPv6Network:
    """A prefix.

    Raises:
        ValueError: it is none, or has bits beyond its length.
    """
    return ip_network(_plain(text))


def exact_interface(text: str) -> IPv4Interface | IPv6Interface:
    """An address and its network.

    Raises:
        ValueError: it is none.
    """
    return ip_interface(_plain(text))


def _plain(text: str) -> str:
    if not ADDRESS.fullmatch(text):
        raise ValueError(f"{visible(text)}, which is no address")
    return text
