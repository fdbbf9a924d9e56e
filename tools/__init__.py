"""Tools for developers: damage and faults at random, tables of equality, type stubs."""
