"""Leverwatch: whether each optimization of an LLM server still pays, per traffic segment."""

from leverwatch.connecting import connect
from leverwatch.version import __version__

__all__ = ["__version__", "connect"]
