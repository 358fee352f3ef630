"""Verbs that try a fabric on emulated switches."""
