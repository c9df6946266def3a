"""Effects: the right to call, what came of a call, and what becomes of those that are in doubt."""
