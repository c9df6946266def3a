-- set_clock: the wall clock was found ahead of the clock of this file, or the machine has booted.
INSERT INTO clock (id, epoch, ahead) VALUES (1, ?1, ?2) ON CONFLICT (id) DO UPDATE SET epoch = ?1, ahead = ?2
