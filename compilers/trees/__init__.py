"""Spanning trees of a fabric, for collectives and multicast: built, bounded, repaired, emitted."""
