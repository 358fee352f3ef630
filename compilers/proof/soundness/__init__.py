"""Soundness: a build checked against itself, before its packets are walked."""
