"""Rows in, numbers out: assembly, segments, metric definitions, cells, effects."""
