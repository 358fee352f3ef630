"""Bounces in ER_q: where packets go that came in on the port that they would leave by."""
