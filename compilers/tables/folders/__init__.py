"""Builds on disk: folders that take their place whole, and are checked when read."""
