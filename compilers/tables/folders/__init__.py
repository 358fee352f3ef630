"""Builds on disk: folders that are replaced as a whole, and whose files are checked when read."""
