"""Graphs in files: forms that are read, and forms that are written."""
