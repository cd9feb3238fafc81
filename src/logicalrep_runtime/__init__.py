"""Support code of generated modules: errors, scalars, Structs, decoder state, and buffers for Arrow.

It is written by hand and imports nothing generated: the generated package passes its tables in.
"""
