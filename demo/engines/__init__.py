"""One emitter an engine: request records in, encoded spans out, named and typed as that engine sends them."""
