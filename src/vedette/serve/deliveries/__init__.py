"""Events of sets as webhooks: what is sent where, how far it has come, and what could not be delivered."""
