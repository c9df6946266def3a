"""The verbs: submit, claim, record, retry, return, fail, reclaim; rules turned into bundles, never SQL."""
