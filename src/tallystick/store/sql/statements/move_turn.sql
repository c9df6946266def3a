-- move_turn: note where the claims of a queue stand; its revision is for what people and programs change.
-- takes: queue text, turn text, full_us int
UPDATE queues SET turn = :turn, full_us = :full_us WHERE queue = :queue
