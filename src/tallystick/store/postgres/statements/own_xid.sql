-- own_xid: the number of this transaction, and its server; in a user's transaction, where the names are the user's.
SELECT @part(own_number)
