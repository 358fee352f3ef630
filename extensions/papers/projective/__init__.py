"""The Projective Networks paper: its tables and figures."""
