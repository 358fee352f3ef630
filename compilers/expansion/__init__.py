"""A fabric grown by racks: what stands stays, and what is added is listed."""
