"""The search for combinations of the notation that the checker accepts and the package gets wrong."""

from codegen.fuzz.command import add_arguments, run

__all__ = ["add_arguments", "run"]
