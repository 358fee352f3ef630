"""Bearer tokens (RFC 6750) of the management API, from a file, and the roles that they have.

`controller.composition` reads the file. The HTTP process compares the tokens of requests with those
of the file (`controller.management.site`).
"""

from __future__ import annotations

import hmac
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from inventory.problems import InputError

LEAST_LENGTH = 16
"""Least characters of a token."""
MOST_CHARACTERS = 1 << 20
"""Most characters of a file of tokens."""
NAME = re.compile(r"[\w.@+-]{1,64}", re.ASCII)
"""The name of a token's holder."""
Role = Literal["read", "operate", "apply"]
"""The role of a token. read: it may read what is not public; operate: also reconcile, drain and
undrain; apply: also move to another build. Each role includes those before it."""
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Token:
    """An accepted token."""

    name: str
    """The name of its holder."""
    role: Role
    """The role of the token."""
    secret: bytes
    """The characters of the token."""

    def may(self, role: Role) -> bool:
        """Whether its role includes this one."""
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(slots=True)
class Tokens:
    """The accepted tokens. Without any, all changes are refused."""

    accepted: tuple[Token, ...] = ()
    """The tokens, in the order of the file."""
    file: Path | None = None
    """The file that has them; None without one."""

    @classmethod
    def read(cls, file: Path) -> Tokens:
        """Read `NAME ROLE TOKEN` from each line; a token alone is for everything.

        Empty lines and those that begin with # are ignored.

        Raises:
            InputError: the file cannot be read, others can read it, or a line is invalid.
        """
        tokens = cls(file=file)
        tokens.read_again()
        return tokens

    def read_again(self) -> None:
        """Read the file again, with the errors of `read`; the tokens stay as they are then."""
        file = self.file
        if file is None:
            return
        required = "a file of tokens in ASCII, one a line"
        todo = f"make one with: (umask 077; openssl rand -hex 32 > {file})"
        try:
            mode, text = file.stat().st_mode, ""
            # Reading a pipe would wait for ever, and a device may have no end.
            if stat.S_ISREG(mode) and not mode & 0o077:
                with file.open(encoding="ascii") as stream:
                    text = stream.read(MOST_CHARACTERS + 1)
        except (OSError, UnicodeDecodeError) as error:
            given = getattr(error, "strerror", "") or str(error)
            raise _refusal(file, required, given, todo) from error
        if not stat.S_ISREG(mode):
            kind = "a named pipe" if stat.S_ISFIFO(mode) else "something else than a file"
            raise _refusal(file, required, kind, todo)
        if len(text) > MOST_CHARACTERS:
            raise _refusal(file, required, f"more than {MOST_CHARACTERS:,} characters", todo)
        if mode & 0o077:
            given = f"mode {mode & 0o777:o}"
            raise _refusal(file, "a file that only its owner can read", given, f"chmod 600 {file}")
        lines = enumerate(map(str.strip, text.splitlines()), 1)
        tokens = [
            _token(file, number, line)
            for number, line in lines
            if line and not line.startswith("#")
        ]
        if not tokens:
            raise _refusal(file, "at least one token", "none", MAKE)
        self.accepted = tuple(tokens)

    def bearer(self, authorization: str | None) -> Token | None:
        """The accepted token in this Authorization header; None if there is none.

        The secret is compared with all tokens, each in constant time: the time of an answer tells
        nothing about them.
        """
        scheme, _, text = (authorization or "").partition(" ")
        secret = text.strip().encode()
        equal = [token for token in self.accepted if hmac.compare_digest(secret, token.secret)]
        return equal[0] if equal and scheme.lower() == "bearer" else None


MAKE = "make one with: openssl rand -hex 32"
"""The command that makes a token, in messages."""


def _token(file: Path, number: int, line: str) -> Token:
    """The token of a line, by default for everything. Error messages never show the secret."""
    words = line.split()
    if len(words) not in (1, 3):
        raise _refusal(file, "NAME ROLE TOKEN, or TOKEN", f"{len(words)} words", MAKE, number)
    *name_and_role, secret = words
    name, role = name_and_role or (f"line {number}", "apply")
    if role not in ROLES:
        raise _refusal(file, " or ".join(ROLES), "another role", line=number)
    if name_and_role and not NAME.fullmatch(name):
        raise _refusal(file, "a name of letters, digits and .@+-_", "another one", line=number)
    if len(secret) < LEAST_LENGTH:
        given = f"one of {len(secret)} characters"
        raise _refusal(file, f"a token of at least {LEAST_LENGTH} characters", given, MAKE, number)
    if not secret.isprintable():  # such as NULs, which a crash leaves: no header can have them
        raise _refusal(file, "a token of printable characters", "others", MAKE, number)
    return Token(name, role, secret.encode())


def _refusal(file: Path, required: str, given: str, todo: str = "", line: int = 0) -> InputError:
    """The error of a token file."""
    return InputError.of(required, given, todo, file=str(file), key="token_file", line=line)
