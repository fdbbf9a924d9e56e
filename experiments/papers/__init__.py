"""The papers' tables, cell by cell: what was published, which run gives it, and what came out."""
