"""Bytes in, rows out: receivers, spool, decoder, dialects, loader."""
