"""Durable primitives: what a store promises, and the stores that keep the promise."""
