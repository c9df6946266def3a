-- insert_message: messages arrive for jobs. A failure of the key: one was delivered before.
-- takes: Message
-- row: (@values(Message))
INSERT INTO messages (@takes) VALUES @rows
