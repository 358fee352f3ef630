"""What switches do with packets: the rule, stated once, and the walks that ask it."""
