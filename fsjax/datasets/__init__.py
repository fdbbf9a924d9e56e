"""Data sets that are known by name: downloaded, found on disk, or generated."""
