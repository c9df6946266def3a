"""The loops: claim, run, renew, reclaim; whatever a process does on behalf of jobs."""
