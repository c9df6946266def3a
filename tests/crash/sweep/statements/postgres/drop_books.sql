-- drop_books: a trial that went well leaves nothing behind.
DROP SCHEMA IF EXISTS {} CASCADE
