"""Operations that are faster than those of JAX; their tests state how far results differ."""
