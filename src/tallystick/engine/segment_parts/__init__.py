"""What a segment is made of: answers that it knows, values that it drew, groups that it opens."""

from __future__ import annotations
