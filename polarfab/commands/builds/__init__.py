"""Verbs from the two input files to a build that is proved, and about what a build holds."""
