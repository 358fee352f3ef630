"""Verbs about graphs: sizes, measures, pictures."""
