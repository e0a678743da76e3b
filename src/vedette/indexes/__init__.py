"""Which of many boxes hold a row: one file per structure that the planner chooses from (see `index` and `names`)."""
