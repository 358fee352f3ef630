"""Several controllers of one fabric: leader election, OpenFlow roles, takeover."""
