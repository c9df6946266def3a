-- wait_less: from here on this transaction waits $1 milliseconds at most for a row that others hold.
SELECT set_config('lock_timeout', $1, true)
