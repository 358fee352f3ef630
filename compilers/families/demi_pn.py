"""demi-PN, the polarity quotient of PN: another name of PolarFly (Projective Networks paper).

This file makes `family: demi-pn` mean the same as `family: polarfly`.
"""

from compilers.families.polarfly import PolarFly as DemiPn

__all__ = ["DemiPn"]
