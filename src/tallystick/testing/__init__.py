"""What tests use: the conformance suite for stores, and the sweeps that kill workers."""
