"""Allocations that fail, one after another, in the C of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest


def failing_calls(function: Callable[..., Any], *arguments: Any, most: int = 10_000) -> Iterator[tuple[Any, bool]]:
    """Call a function with its first, second, … allocation failing; yield what it returns, and whether it raised.

    The test is skipped on a Python without an allocator for tests.
    """
    testcapi = pytest.importorskip("_testcapi")
    if not hasattr(testcapi, "set_nomemory"):
        pytest.skip("this Python has no allocator for tests")
    for number in range(most):
        returned, has_raised = None, False
        testcapi.set_nomemory(number, number + 1)
        try:
            returned = function(*arguments)
        except MemoryError:
            has_raised = True
        finally:
            testcapi.remove_mem_hooks()
        yield returned, has_raised
    raise AssertionError("the allocations have no end")
