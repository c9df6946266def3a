"""Relays: how directives leave, and how reports that come back over brokers are heard."""
