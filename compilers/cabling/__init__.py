"""Cabling: the cable schedule with its formats and bill of materials."""
