"""Effects as users hold them: a key, a call that is made once, and who finds out what came of it."""
