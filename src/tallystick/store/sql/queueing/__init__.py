"""Queues with limits on SQL stores: their rows, and what a claim sees and leaves."""
