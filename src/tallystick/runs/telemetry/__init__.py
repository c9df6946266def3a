"""Telemetry: what runs tell a local service, for audit and for tracing a result back to a commit.

The log of a run is the truth; telemetry is a copy that may be late or lost, and its failure never fails a
run.
"""
