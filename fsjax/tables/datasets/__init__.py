"""Registered data sets: downloaded, found on disk, or generated."""
