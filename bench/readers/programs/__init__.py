"""One program for each reader, which runs in an environment of its own with the reader's packages."""
