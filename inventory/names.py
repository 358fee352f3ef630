"""The form of names of nodes, hosts and racks, which become host names and file names."""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""A name, such as `A1-3`."""
