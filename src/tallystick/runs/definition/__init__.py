"""What a user declares: the pipeline, the patterns of its artifact names, and its picture."""
