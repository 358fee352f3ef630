"""`ugal-pf`: the tables of Compact Valiant; the controller shifts their weights by load."""

from compilers.spec.balances import Balance


class UgalPf(Balance):
    """UGAL_PF (PolarFly paper, §VII-C)."""

    name = "ugal-pf"
    place = 5
    adapts = True
