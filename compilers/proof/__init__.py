"""Proof that no packet is lost: walks, failures, channels, and the paths of one pair."""
