"""The line of JSON in NetBox's comments with values of the inventory that NetBox has no field for.

An export writes it into the comments of types and devices, and an import reads it back, so that
nothing of the inventory is lost on the way. Nautobot's comments have it, too.
"""

from __future__ import annotations

import json
from typing import Any

from inventory.problems import InputError, shown
from inventory.yamlfile import Document

EXTRA_MARK = "polarfab: "
"""The beginning of the line."""
COMMENT_LINE = "the line polarfab: {…} as JSON"
"""What the line should be, in messages."""


def to_comment(extras: dict[str, Any]) -> str:
    """The line for `comments` with these values; "" without any."""
    return EXTRA_MARK + json.dumps(extras, sort_keys=True) if extras else ""


def from_comment(comment: object, file: str, line: int) -> dict[str, Any]:
    """The values in the line of `to_comment`; {} if the comment has no such line.

    Args:
        comment: the whole comment, in which people may have written other lines.
        file: the file of the comment, for messages.
        line: the line of the comment in the file.

    Raises:
        InputError: the line is damaged, so values would be lost.
    """
    for text in comment.splitlines() if isinstance(comment, str) else ():
        if text.startswith(EXTRA_MARK + "{"):
            try:
                extras: dict[str, Any] = json.loads(text.removeprefix(EXTRA_MARK))
            except (ValueError, RecursionError):
                todo = "take it from the export again, or remove the line"
                given = shown(text)
                raise InputError.of(
                    COMMENT_LINE, given=given, todo=todo, file=file, line=line, key="comments"
                ) from None
            return extras
    return {}


def device_type_extras(document: Document) -> dict[str, Any]:
    """The values in the comments of a device type's file (`from_comment`)."""
    comment = document.data.get("comments")
    return from_comment(comment, document.file, document.line(("comments",)))
