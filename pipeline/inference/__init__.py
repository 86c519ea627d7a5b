"""Arrays in, arrays out: statistics of many streams at once, that stay honest however often one looks. No clock, no I/O."""
