"""Keep the tables of a database as Delta tables, by the executors of a cluster.

    spark-submit --master spark://host:7077 examples/on_a_cluster.py "host=db dbname=shop user=postgres" s3://lake/shop
    SPARK_REMOTE=sc://host:15002 python examples/on_a_cluster.py "host=db dbname=shop user=postgres" s3://lake/shop

In place of the object store it may be a folder that all machines mount. docs/how-to/clusters.md has what they need.
To stop for good: logicalrep drop --dsn "host=db dbname=shop user=postgres" --to s3://lake/shop
"""

import sys

import logicalrep

dsn, to = sys.argv[1:]
logicalrep.replicate(dsn, to, once=True, shared_folder="://" not in to)
