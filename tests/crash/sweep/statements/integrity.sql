-- integrity: what SQLite itself thinks of the file; one row, 'ok'.
PRAGMA integrity_check
