"""demi-PN, the polarity quotient of PN: another name of PolarFly (Projective Networks paper)."""

from compilers.families.polarfly import PolarFly as DemiPn

__all__ = ["DemiPn"]
