"""The fifteen digits at work: how they move, what follows from them, which of them can stand together."""
