"""Comparison of two specs, for users of the protocol: `python -m codegen diff`."""

from codegen.diff.command import add_arguments, run
from codegen.diff.compare import Comparison, compare
from codegen.diff.rules import RULES, Severity, rule_rows

__all__ = ["RULES", "Comparison", "Severity", "add_arguments", "compare", "rule_rows", "run"]
