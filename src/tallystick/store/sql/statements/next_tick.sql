-- next_tick: when the next schedule is due.
SELECT min(due_at) FROM schedules WHERE due_at IS NOT NULL
