"""Observations compared with the prediction from the tables, and reports."""
