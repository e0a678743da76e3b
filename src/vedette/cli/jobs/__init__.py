"""What the commands do: they read files, call the library and write the answers."""
