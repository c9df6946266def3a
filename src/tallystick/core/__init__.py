"""The rules, as pure functions and tables: no I/O, no clock, no threads, no chance."""
