"""Walks: packets followed through the compiled tables, from all switches to all others."""
