"""Golden tests that are texts: reading their files, running their commands."""
