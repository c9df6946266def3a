"""Commands about the store and its books."""
