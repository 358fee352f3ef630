"""Files about a fabric for other programs: schedulers, collective libraries, simulators."""
