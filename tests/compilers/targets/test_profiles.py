"""What an OpenFlow profile can do, at its limits."""

from dataclasses import replace

from compilers.targets.openflow.profiles import FAILOVER_BUCKETS, OVS, PROFILES
from tests.compilers.routed import routed


def test_groups_repair_from_as_many_buckets_as_the_largest_of_them_has() -> None:
    assert replace(OVS, buckets=FAILOVER_BUCKETS).repairs
    assert not replace(OVS, buckets=FAILOVER_BUCKETS - 1).repairs


def test_a_bucket_is_enough_where_each_class_has_one_way() -> None:
    one = replace(PROFILES["few-buckets"], buckets=1)
    assert not [said for said in one.lacks(routed(q=3)) if " of a class" in said]
    (said,) = (said for said in one.lacks(routed(q=3, spread=True)) if " of a class" in said)
    assert said == "at most 1 of up to 4 paths of a class are used"
