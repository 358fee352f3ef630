"""The PolarFly paper: its tables and figures."""
