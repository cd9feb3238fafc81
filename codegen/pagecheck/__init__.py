"""The comparison of a documentation page with the spec: `python -m codegen docs PAGE --version N`."""

from codegen.pagecheck.command import add_arguments, run
from codegen.pagecheck.comparison import compare, protocols_on
from codegen.pagecheck.quoting import Difference

__all__ = ["Difference", "add_arguments", "compare", "protocols_on", "run"]
