"""Test vectors for implementations in other languages: the spec's messages as bytes and as fields by name."""

from codegen.vectors.command import add_arguments, run

__all__ = ["add_arguments", "run"]
