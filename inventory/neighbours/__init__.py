"""Neighbour facts: which port of which node sees which other, as switches and tools tell it."""
