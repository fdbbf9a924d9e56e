"""Tables: arrays, sparse rows and tables on disk; how they are checked, split and scaled."""
