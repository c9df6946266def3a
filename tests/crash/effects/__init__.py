"""Crash cases of effects: workers killed, and a provider cut, around every moment of a call."""
