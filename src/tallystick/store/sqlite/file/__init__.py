"""The SQLite file: opening it, its clock, its locks between processes, its notifier."""
