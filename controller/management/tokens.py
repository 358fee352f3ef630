"""Bearer tokens (RFC 6750) from a file, which authorise changes."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from pathlib import Path

from inventory.problems import InputError

LEAST_LENGTH = 16
"""Least characters of a token."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The accepted tokens; without any, all changes are refused."""

    known: tuple[bytes, ...] = ()

    @classmethod
    def read(cls, file: Path) -> Tokens:
        """Read one token per line, ignoring empty lines and those that begin with #.

        Raises:
            InputError: the file cannot be read, others can read it, or a token is invalid.
        """
        try:
            mode, text = file.stat().st_mode, file.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise _refusal(file, "a file of tokens in ASCII, one a line", str(error)) from error
        if mode & 0o077:
            raise _refusal(
                file, "a file that only its owner can read", f"mode {mode & 0o777:o}", "chmod 600"
            )
        lines = [line.strip() for line in text.splitlines()]
        tokens = [line for line in lines if line and not line.startswith("#")]
        if (
            not tokens
            or min(map(len, tokens)) < LEAST_LENGTH
            or any(" " in token for token in tokens)
        ):
            shortest = min(map(len, tokens), default=0)
            raise _refusal(
                file,
                f"tokens of at least {LEAST_LENGTH} characters without spaces",
                f"{len(tokens)} tokens, the shortest of {shortest} characters",
                "make one with: openssl rand -hex 32",
            )
        return cls(tuple(token.encode() for token in tokens))

    def accept(self, authorization: str | None) -> bool:
        """Whether this Authorization header allows changes; compared in constant time."""
        scheme, _, token = (authorization or "").partition(" ")
        given = token.strip().encode()
        matches = [hmac.compare_digest(given, known) for known in self.known]
        return scheme.lower() == "bearer" and any(matches)


def _refusal(file: Path, required: str, given: str, todo: str = "") -> InputError:
    return InputError.of(required, given, todo, file=str(file), key="--token-file")
