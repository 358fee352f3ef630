"""Proof that nothing is lost: walks, failures, channels, and the paths of one pair."""
