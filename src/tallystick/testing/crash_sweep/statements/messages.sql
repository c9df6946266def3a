-- messages: the ledger of every message.
SELECT job_id, guid, ledger FROM messages
