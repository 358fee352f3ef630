"""Copies of the TLS files in memory, as they were when they could be used last.

The HTTP process reads the copies instead of the files (`controller.management.http_supervisor`). If
it is started again while the files on the disk cannot be used, it still has usable ones, as the
controller has.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

COPIED = "key", "certificate", "authority"
"""The fields of `controller.settings.Tls` whose files are copied."""


class TlsCopies:
    """The copies: files in memory, which the HTTP process inherits.

    Args:
        contents: what the files of `COPIED` have, in this order.

    Attributes:
        descriptors: the descriptors of the copies, in the same order.
    """

    def __init__(self, contents: Sequence[bytes]) -> None:
        self.descriptors = [os.memfd_create(name) for name in COPIED]
        self.renew(contents)

    def renew(self, contents: Sequence[bytes]) -> None:
        """Copy what the files have now, in the order of `COPIED`."""
        for descriptor, content in zip(self.descriptors, contents, strict=True):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, content, 0)

    @property
    def paths(self) -> dict[str, str]:
        """The paths of the copies in a process that has inherited them, by field of `Tls`."""
        return {
            name: f"/proc/self/fd/{descriptor}"
            for name, descriptor in zip(COPIED, self.descriptors, strict=True)
        }
