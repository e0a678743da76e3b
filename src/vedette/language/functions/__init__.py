"""The functions of the language, by what they are about. `function_table.py` puts their rows together."""
