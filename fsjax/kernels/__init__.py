"""Operations that are faster than JAX's own; the tests of each say by how much they differ."""
