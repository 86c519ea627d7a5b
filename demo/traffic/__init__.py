"""Who asks for what and when: synthetic days and public traces, as arrivals in order of time."""
