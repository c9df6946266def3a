"""What is known of a run: the events, the state folded from them, the snapshot, and how to read them."""
