"""Copies of the TLS files in memory, as they were when they could be used last.

The HTTP process reads the copies instead of the files (`controller.management.http_supervisor`). If
it is started again while the files on the disk cannot be used, it still has usable ones, as the
controller has.
"""

from __future__ import annotations

import os
from collections.abc import Mapping


class TlsCopies:
    """The copies: files in memory, which the HTTP process inherits.

    Args:
        contents: what each file has, by its field of `controller.settings.Tls`.

    Attributes:
        descriptors: the descriptor of each copy, by the same fields.
    """

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self.descriptors = {field: os.memfd_create(field) for field in contents}
        self.renew(contents)

    def renew(self, contents: Mapping[str, bytes]) -> None:
        """Copy what the same files have now."""
        for field, descriptor in self.descriptors.items():
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, contents[field], 0)

    @property
    def paths(self) -> dict[str, str]:
        """The path of each copy in a process that has inherited them, by the same fields."""
        return {field: f"/proc/self/fd/{number}" for field, number in self.descriptors.items()}
