"""Values that NetBox and Nautobot have no field for, as a line of JSON in their comments."""

from __future__ import annotations

import json
from typing import Any

from inventory.problems import InputError, shown
from inventory.yamlfile import Document

EXTRA_MARK = "polarfab: "
COMMENT_LINE = "the line polarfab: {…} as JSON"


def to_comment(extras: dict[str, Any]) -> str:
    """A line for `comments` with these facts; "" without any."""
    return EXTRA_MARK + json.dumps(extras, sort_keys=True) if extras else ""


def from_comment(comment: object, file: str, line: int) -> dict[str, Any]:
    """What `to_comment` wrote, among whatever else people wrote there.

    Raises:
        InputError: what it wrote is damaged, so facts would be lost.
    """
    for words in comment.splitlines() if isinstance(comment, str) else ():
        if words.startswith(EXTRA_MARK + "{"):
            try:
                facts: dict[str, Any] = json.loads(words.removeprefix(EXTRA_MARK))
            except (ValueError, RecursionError):
                todo = "take it from the export again, or remove the line"
                given = shown(words)
                raise InputError.of(COMMENT_LINE, given, todo, file, line, "comments") from None
            return facts
    return {}


def of_document(document: Document) -> dict[str, Any]:
    """`from_comment` of a device type."""
    words = document.data.get("comments")
    return from_comment(words, document.file, document.line(("comments",)))
