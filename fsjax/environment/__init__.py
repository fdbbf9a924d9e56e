"""The process and the machine around the library: terminal, memory, settings of JAX."""
