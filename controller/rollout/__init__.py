"""Moves of a running fabric from one build to another, round by round."""
