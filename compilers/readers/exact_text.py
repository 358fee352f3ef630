"""Lines, words, numbers and addresses as devices read them, character by character.

Python reads more than devices do. `int` takes digits of all scripts, `+5`, `1_000` and `017`, which
a device refuses or reads as 15. `strip` and `split` take a no-break space for a blank. `splitlines`
ends a line at any of eleven characters. Reading a file as text hides carriage returns. In this
module only blanks and tabs are blank, only `\\n` ends a line, and a number has neither a sign nor
leading zeros. All characters but printable ASCII, tabs and `\\n` are *strange*: no template writes
them, and devices differ in what they do with them.
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
"""The characters that are blank."""
NUMBER = re.compile(r"0|[1-9][0-9]{0,99}")
"""A number without a sign and without leading zeros; the limit keeps `int` fast."""
STRANGE = re.compile(r"[^\t\n\x20-\x7e]")
"""A strange character."""
WORD = re.compile(r"[^ \t]+")
"""A word: characters between blanks."""
ADDRESS = re.compile(r"[0-9A-Fa-f.:]+(?:/(?:0|[1-9][0-9]{0,2}))?")
"""An address, perhaps with a length. `ipaddress` takes further forms, which devices may not."""


def read_exact(file: Path) -> str:
    """The text of a file with all its characters; bytes that are not UTF-8 become strange ones.

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
    """The words of a text, between blanks."""
    return WORD.findall(text)


def is_number(text: str) -> bool:
    """Whether a text is a number that every device reads alike.

    >>> [is_number(text) for text in ("17", "017", "+5", "1_000")]
    [True, False, False, False]
    """
    return NUMBER.fullmatch(text) is not None


def exact_number(text: str) -> int:
    """The number that a text is.

    Raises:
        ValueError: it is no number.
    """
    if not is_number(text):
        raise ValueError(f"{visible(text)}, which is no number")
    return int(text)


def strange(text: str) -> re.Match[str] | None:
    """The first strange character of a text."""
    return STRANGE.search(text)


def strange_line(text: str) -> int:
    """The line of the first strange character, from 1; 0 where there is none."""
    character = strange(text)
    return text.count("\n", 0, character.start()) + 1 if character else 0


def visible(text: str) -> str:
    r"""A text in which strange characters are written as escapes.

    >>> print(visible("10.0.0.1\u00a0/24"))
    10.0.0.1\xa0/24
    """
    return STRANGE.sub(lambda character: _escape(character[0]), text)


def _escape(character: str) -> str:
    r"""The escape of a character, as Python writes it; control characters are always `\xNN`."""
    return f"\\x{ord(character):02x}" if ord(character) < 128 else ascii(character)[1:-1]


def exact_address(text: str) -> IPv4Address | IPv6Address:
    """The address that a text is.

    Raises:
        ValueError: it is no address.
    """
    return ip_address(_plain(text))


def exact_network(text: str) -> IPv4Network | IPv6Network:
    """The prefix that a text is.

    Raises:
        ValueError: it is no prefix, or has bits beyond its length.
    """
    return ip_network(_plain(text))


def exact_interface(text: str) -> IPv4Interface | IPv6Interface:
    """The address of an interface with its network, such as `10.0.0.9/29`.

    Raises:
        ValueError: it is no address.
    """
    return ip_interface(_plain(text))


def _plain(text: str) -> str:
    """The same text, if it is an address or a prefix in its plain form (`ADDRESS`).

    Raises:
        ValueError: it is not.
    """
    if not ADDRESS.fullmatch(text):
        raise ValueError(f"{visible(text)}, which is no address")
    return text
