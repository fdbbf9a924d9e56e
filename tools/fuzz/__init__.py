"""``make fuzz``: many damaged files, inconsistent files, bad calls and mistakes in configs."""
