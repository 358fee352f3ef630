"""Values that NetBox and Nautobot have no field for, as a line of JSON in their comments."""

from __future__ import annotations

import json
from typing import Any

EXTRA_MARK = "polarfab: "


def to_comment(extras: dict[str, Any]) -> str:
    """One line; "" for nothing."""
    return EXTRA_MARK + json.dumps(extras, sort_keys=True) if extras else ""


def from_comment(comment: object) -> dict[str, Any]:
    """What `to_comment` wrote, among whatever else people wrote there."""
    for line in comment.splitlines() if isinstance(comment, str) else ():
        if line.startswith(EXTRA_MARK):
            try:
                found = json.loads(line.removeprefix(EXTRA_MARK))
            except (ValueError, RecursionError):
                continue
            return found if isinstance(found, dict) else {}
    return {}
