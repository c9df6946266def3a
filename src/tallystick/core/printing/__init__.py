"""The rules printed: as SQL for the databases, as tables and diagrams for people."""
