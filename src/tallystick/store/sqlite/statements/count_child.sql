-- count_child: a child that has ended, in one statement: its message with all its digits, and the group that counted it.
-- takes: job_id, dimension, name, occurrence, rev, ledger, failed, hit, guid, digits, guid_ledger, state, at
-- row: (:job_id, :dimension, :name, :occurrence, :rev, :ledger, :failed, :hit, :guid, :digits, :guid_ledger, :state, :at)
INSERT INTO child_counts (@takes) VALUES @rows
