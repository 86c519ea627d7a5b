"""One serving replica: what its hardware can do, what a moment's work costs it, and what it does from event to event."""
