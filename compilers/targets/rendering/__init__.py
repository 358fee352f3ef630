"""Rendering: from a target and a build to files, checked and exchanged whole."""
