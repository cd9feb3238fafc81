"""What generated modules import: errors, scalars, what Structs are made of, a decoder's state, buffers for Arrow.

It is written by hand and imports nothing that is generated: the generated package hands in its tables.
"""
