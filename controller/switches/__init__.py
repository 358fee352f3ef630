"""Connected switches: sessions, transactions, reconciliation."""
