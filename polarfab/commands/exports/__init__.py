"""Verbs that write a fabric for other programs."""
