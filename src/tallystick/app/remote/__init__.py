"""Remote work on a Tally: protocols and the commands that they take."""
