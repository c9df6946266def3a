"""Values as JSON: arguments, results and errors, by annotation, and their hash."""
