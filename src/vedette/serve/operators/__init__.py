"""How the service runs each operator: one small file per operator, and the table of them by kind of set."""
