"""``make chaos``: kills runs, damages their files, starts them twice, and makes the disk fail."""
