"""What a store promises, one topic per file; `suite.py` puts the classes together."""

from __future__ import annotations
