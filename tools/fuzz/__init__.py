"""``make fuzz``: many damaged files."""
