"""Evaluation: comparisons and estimates of fabrics, which change no build."""
