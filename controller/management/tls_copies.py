"""Copies of the TLS files in memory, as they were when they could be used last.

The HTTP process reads the copies instead of the files (`controller.management.http_supervisor`). If
it is started again while the files on the disk cannot be used, it still has usable ones, as the
controller has.
"""

from __future__ import annotations

import os

from controller.settings import Tls


class TlsCopies:
    """The copies: files in memory, which the HTTP process inherits.

    Attributes:
        descriptors: the descriptors of the copies: key, certificate, authority.
    """

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self.descriptors = [os.memfd_create(name) for name in ("key", "certificate", "authority")]
        self.renew()

    def renew(self) -> None:
        """Copy all files; the caller has checked that they can be used.

        Raises:
            OSError: a file has gone since the check. All copies stay as they were.
        """
        files = self._tls.key, self._tls.certificate, self._tls.authority
        contents = [file.read_bytes() for file in files]
        for descriptor, content in zip(self.descriptors, contents, strict=True):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, content, 0)

    @property
    def paths(self) -> dict[str, str]:
        """The paths of the copies in a process that has inherited them, by field of `Tls`."""
        names = "key", "certificate", "authority"
        return {
            name: f"/proc/self/fd/{descriptor}"
            for name, descriptor in zip(names, self.descriptors, strict=True)
        }
