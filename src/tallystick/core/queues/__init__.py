"""Queues with limits: their rows, and what may be claimed of them."""
