"""The journal of a stage: the file that holds the outcomes, how it is written, read and audited."""
