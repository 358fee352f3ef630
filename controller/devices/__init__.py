"""Routers that no controller programs: configured over their own shells."""
