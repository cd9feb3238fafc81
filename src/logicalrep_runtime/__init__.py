"""Support code of generated modules: errors, scalars, Structs, decoder state, and buffers for Arrow."""
