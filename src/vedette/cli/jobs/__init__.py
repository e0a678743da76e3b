"""The work of the commands: read files, call the library and write the answers."""
