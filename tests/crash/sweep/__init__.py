"""The crash harness: workers die at every named point, and an oracle of its own checks the books.

`python -m tests.crash.sweep --seconds 60` forks real processes on a real SQLite file, kills them
at every declared crash point and at pairs of points, stops them past their lease, and shows by controls
without a guard that the oracle would notice.
"""
