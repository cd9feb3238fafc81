"""Replicate the tables of a database to Delta tables, on the executors of a cluster.

    spark-submit --master spark://host:7077 examples/on_a_cluster.py "host=db dbname=shop user=postgres" s3://lake/shop
    SPARK_REMOTE=sc://host:15002 python examples/on_a_cluster.py "host=db dbname=shop user=postgres" s3://lake/shop

You can also use a folder that all machines mount. docs/how-to/clusters.md lists the requirements.
To stop for good: logicalrep drop --dsn "host=db dbname=shop user=postgres" --to s3://lake/shop
"""

import sys

import logicalrep

dsn, to = sys.argv[1:]
logicalrep.replicate(dsn, to, once=True, shared_folder="://" not in to)
