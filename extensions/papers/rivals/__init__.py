"""Routes of others on PolarFly, beside those here."""
