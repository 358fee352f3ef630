"""Several controllers of one fabric, and the one that leads."""
