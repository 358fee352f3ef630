"""A running fabric moved from one build to another, round by round."""
