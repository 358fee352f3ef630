"""Verbs for those who run jobs on the hosts."""
