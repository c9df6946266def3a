"""Verbs: what a request comes to, given a picture. Pure functions; the model checker calls the same ones.

Each takes the pictures of a flush, a request and the time, and returns a `Plan`, a `Refusal`, or the wish to
see more. What a request wants to see is in `wants`.
"""
