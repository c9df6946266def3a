"""Commands about HTTP: serving, and the keys of clients."""
