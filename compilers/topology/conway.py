"""Conway polynomials of small finite fields.

They define the numbering of the elements of F_q (`compilers.topology.field`). The package `galois`
has the same polynomials, but takes seconds to import.
"""

from __future__ import annotations

CONWAY = {
    4: (1, 1, 1),
    8: (1, 0, 1, 1),
    9: (1, 2, 2),
    16: (1, 0, 0, 1, 1),
    25: (1, 4, 2),
    27: (1, 0, 2, 1),
    32: (1, 0, 0, 1, 0, 1),
    49: (1, 6, 3),
    64: (1, 0, 1, 1, 0, 1, 1),
    81: (1, 2, 0, 0, 2),
    121: (1, 7, 2),
    125: (1, 0, 3, 3),
    128: (1, 0, 0, 0, 0, 0, 1, 1),
    169: (1, 12, 2),
    243: (1, 0, 0, 0, 2, 1),
    256: (1, 0, 0, 0, 1, 1, 1, 0, 1),
    289: (1, 16, 3),
    343: (1, 6, 0, 4),
    361: (1, 18, 2),
    512: (1, 0, 0, 0, 0, 1, 0, 0, 0, 1),
    529: (1, 21, 5),
    625: (1, 0, 4, 4, 2),
    729: (1, 0, 2, 0, 1, 2, 2),
    841: (1, 24, 2),
    961: (1, 29, 3),
    1024: (1, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1),
}
"""By the order q = p^n of a field, n > 1: the n + 1 coefficients in F_p, that of x^n first.

So F_9 is F_3[x] modulo x² + 2x + 2.
"""
