"""Durable files: an append-only event log with a hash chain, and documents that are replaced atomically.

What is acknowledged is on the disk; what is not acknowledged leaves no trace that a reader could take for a
fact.
"""
