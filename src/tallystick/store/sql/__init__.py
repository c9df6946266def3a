"""What both SQL stores say alike: statements, the columns of named rows, and the tables."""
