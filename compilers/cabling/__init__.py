"""Cabling: the cable schedule with its formats, phases and bill of materials."""
