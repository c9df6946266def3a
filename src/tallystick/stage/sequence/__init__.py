"""The memory of a stage: numbered slots, their legal moves, leases and counters."""
