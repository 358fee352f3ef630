"""The tables and figures of the three papers, computed, drawn, and held against what is printed."""
