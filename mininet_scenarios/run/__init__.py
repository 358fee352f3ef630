"""Running a scenario: rehearsal, timeline, loss."""
