"""The child process that prepares a GGUF file: the one place of the store that loads native
libraries."""
