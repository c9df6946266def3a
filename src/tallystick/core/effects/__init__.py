"""Effects: what is kept of a call that reaches outside, and what may be asked about it."""
