-- message: one message.
-- takes: guid text
SELECT @names(Message) FROM messages WHERE guid = :guid
