"""The PolarStar paper: its tables and figures."""
