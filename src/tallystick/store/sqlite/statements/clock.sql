-- clock: how far the clock of this file is ahead of the boot clock, and of which boot. No row: nothing was written yet.
SELECT epoch, ahead FROM clock
