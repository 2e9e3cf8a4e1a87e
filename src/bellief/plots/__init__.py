"""Pictures and notebook cards from arrays or plain objects; matplotlib is imported when it is first needed."""
