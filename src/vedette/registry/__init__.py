"""Query sets in a database: named sets, their versions and changes, and handles with which pipelines follow them."""
