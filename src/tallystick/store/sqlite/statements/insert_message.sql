-- insert_message: a message arrives for a job. A failure of the key: it was delivered before.
-- takes: Message
INSERT INTO messages (@takes) VALUES (@values(Message))
