"""The frames that the controller and its HTTP process exchange over a Unix socket.

A frame is the length of its header, the length of its body, the header in JSON, and the body. A
header has one key that says what the frame is:

- `pages`, to the HTTP process: pages, which readers get from now on. Its value has the name and the
  length of each page, in the order in which they follow each other in the body.
- `reload`, to the HTTP process: the TLS files have changed.
- `request`, to the controller: the number of a request, which the controller has to answer. It has
  the token, too: the controller checks again whether it is accepted.
- `answer`, to the HTTP process: the number of the request that this answers.
- `alive`, to the controller: a sign of life, as the process does not hang.
- `wrong_token`, to the controller: the host that sent one.
- `fault`, to the controller: what failed in the HTTP process; `text`, the traceback; and `times`,
  for how many faults this frame stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from struct import Struct
from typing import Any

LENGTHS = Struct("!II")
"""The lengths of a frame's header and body."""
Header = dict[str, Any]
"""The header of a frame, as JSON has it."""


def frame_start(header: Header, body_bytes: int) -> bytes:
    """What is sent of a frame before its body of so many bytes."""
    text = json.dumps(header).encode()
    return LENGTHS.pack(len(text), body_bytes) + text


def frame(header: Header, body: bytes = b"") -> bytes:
    """A frame as it is sent."""
    return frame_start(header, len(body)) + body


def pages_frame(pages: Mapping[str, bytes]) -> bytes:
    """A frame with these pages, by name."""
    lengths = {name: len(page) for name, page in pages.items()}
    return frame({"pages": lengths}, b"".join(pages.values()))


def pages_in(header: Header, body: bytes) -> dict[str, bytes]:
    """The pages in a frame of `pages_frame`, by name."""
    pages, offset = {}, 0
    for name, length in header["pages"].items():
        pages[name] = body[offset : offset + length]
        offset += length
    return pages
