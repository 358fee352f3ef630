"""Copies of the TLS files in memory, as they were when they could be used last."""

from __future__ import annotations

import os

from controller.settings import Tls


class TlsCopies:
    """The files that the HTTP process reads. If it is started again while those on the disk cannot
    be used, it has the same as the controller, which goes on with what it has.

    Attributes:
        descriptors: the files in memory, which the process inherits: key, certificate, authority.
    """

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self.descriptors = [os.memfd_create(name) for name in ("key", "certificate", "authority")]
        self.renew()

    def renew(self) -> None:
        """Copy the files, which can be used; all or none.

        Raises:
            OSError: one has gone since it was looked at. The copies stay as they were.
        """
        files = self._tls.key, self._tls.certificate, self._tls.authority
        contents = [file.read_bytes() for file in files]
        for descriptor, content in zip(self.descriptors, contents, strict=True):
            # In memory: no disk holds this up.
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
