"""The environment of the library: terminal, memory, process, and settings of JAX."""
