"""A simulated fleet and a webhook sink: scenario files in, OTLP/gRPC out as engines send it. Talks to the product over the wire only."""
