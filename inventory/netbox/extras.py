"""Facts that NetBox and Nautobot have no field for, kept as a line of JSON in the comments."""

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
    """A line for `comments` with these facts; "" without any."""
    return EXTRA_MARK + json.dumps(extras, sort_keys=True) if extras else ""


def from_comment(comment: object, file: str, line: int) -> dict[str, Any]:
    """The facts of a line of `to_comment`; {} if the comment has none.

    Args:
        comment: the whole comment, in which people may have written other lines.
        file: the file of the comment, for messages.
        line: the line of the comment in the file.

    Raises:
        InputError: the line is damaged, so facts would be lost.
    """
    for words in comment.splitlines() if isinstance(comment, str) else ():
        if words.startswith(EXTRA_MARK + "{"):
            try:
                facts: dict[str, Any] = json.loads(words.removeprefix(EXTRA_MARK))
            except (ValueError, RecursionError):
                todo = "take it from the export again, or remove the line"
                text = shown(words)
                raise InputError.of(COMMENT_LINE, text, todo, file, line, "comments") from None
            return facts
    return {}


def of_document(document: Document) -> dict[str, Any]:
    """The facts in the comments of a device type (`from_comment`)."""
    words = document.data.get("comments")
    return from_comment(words, document.file, document.line(("comments",)))
