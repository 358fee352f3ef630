"""Output: what verbs print, as lines for people and as JSON for machines."""
