"""``make chaos``: kills runs and damages their files."""
