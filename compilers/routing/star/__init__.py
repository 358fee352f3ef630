"""Routes, alternates and repair of a PolarStar, from its structure graph and its supernode."""
