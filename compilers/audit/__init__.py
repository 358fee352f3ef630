"""Audit: the fabric as wired, compared with the plan."""
