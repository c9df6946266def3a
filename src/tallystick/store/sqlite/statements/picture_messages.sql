-- picture_messages: one message by its identifier. No row: it was never delivered.
SELECT @names(Message)
  FROM messages
 WHERE guid = ?1
