"""What Leverwatch says of itself: numbers for `/metrics`, spans and metrics over OTLP, and its log (docs/observing.md)."""
