"""Graphs in files: formats that are read, and formats that are written."""
