"""Which queries stand, in a database: named sets, their versions and changes, and what follows them."""
