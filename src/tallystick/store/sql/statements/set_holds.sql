-- set_holds: the slots of a queue that are taken count from now on as its row says: until their jobs have ended, or while these run.
-- takes: queue text, holds int
UPDATE queue_slots SET holds = :holds WHERE queue = :queue AND holds <> :holds
