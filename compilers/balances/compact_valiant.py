"""`compact-valiant`: hosts' packets go by a neighbour of their switch, and minimally from there."""

from compilers.spec.balance import Balance


class CompactValiant(Balance):
    """Compact Valiant (PolarFly paper, §VII-B): alternates are as `Balance` has them."""

    name = "compact-valiant"
    place = 3
