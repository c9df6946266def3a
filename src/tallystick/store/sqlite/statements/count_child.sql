-- count_child: a child that has ended, in one statement: its message with all its digits, and the group that counted it.
INSERT INTO child_counts (
  job_id, dimension, name, occurrence, rev, ledger, failed, hit, guid, digits, guid_ledger, state, at
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
