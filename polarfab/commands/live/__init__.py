"""Verbs about a fabric that a controller runs."""
