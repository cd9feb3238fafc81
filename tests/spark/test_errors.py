"""Errors reach the driver whole from a worker: as objects, and as the text that Spark shows."""

from __future__ import annotations

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from logicalrep import LogicalRepError
from logicalrep.postgres.preflight.findings import Finding, PreflightError
from tests.errors.every_error import every_error


def test_every_error_comes_from_a_worker_as_it_is(spark: SparkSession) -> None:
    errors = list(every_error())
    found = spark.sparkContext.parallelize(errors, 2).map(lambda error: (str(error), error)).collect()
    assert [(text, str(error), type(error)) for text, error in found] == [
        (str(error), str(error), type(error)) for error in errors
    ]


def test_the_driver_sees_the_text_with_each_code(spark: SparkSession) -> None:
    def fail(_: object) -> None:
        raise PreflightError([Finding("WAL_LEVEL", "It is low."), Finding("SLOT_LOST", "It is lost.")])

    with pytest.raises(PythonException) as raised:
        spark.range(1).rdd.foreach(fail)
    assert "PreflightError: [WAL_LEVEL] It is low.\n[SLOT_LOST] It is lost." in str(raised.value)
    assert not isinstance(raised.value, LogicalRepError)
