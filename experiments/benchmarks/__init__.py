"""Speed and memory: what is measured, and how."""
