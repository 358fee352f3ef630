"""What people pull and label: the cable schedule, its formats, phases and bills."""
