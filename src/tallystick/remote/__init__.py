"""What travels between a Tally and services outside: how directives go out, and how reports come back."""
