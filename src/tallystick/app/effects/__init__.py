"""Effects as users hold them: a key, a call that is made once, and how its outcome is found."""
