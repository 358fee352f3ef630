"""Routes of others on PolarFly, compared with ours."""
