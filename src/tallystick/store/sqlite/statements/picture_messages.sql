-- picture_messages: messages by their identifiers. No row: it was never delivered.
-- takes: guids list
SELECT @names(Message, messages)
  FROM :guids
 CROSS JOIN messages
 WHERE messages.guid = wanted.value
