"""The demo: workers on a fresh file, one of them killed halfway, and the books audited at the end.

Everything on the screen is read from the database file. Nothing is claimed that was not measured.
"""
