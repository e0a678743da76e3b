"""Which of many boxes hold a row: one file per structure, all of one shape (see `index`)."""
