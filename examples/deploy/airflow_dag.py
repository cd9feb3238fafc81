"""Airflow: update the tables every hour, and compare them with the server every night.

One run at a time, as a slot has one reader. Exit code 4: some tables are stopped, and the other tables are up to date.
"""

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

PLACE = '--dsn "host=db dbname=shop user=replicator" --to s3://lake/shop'

with DAG(
    "logicalrep_shop",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5), "pool": "default_pool"},
) as hourly:
    BashOperator(task_id="replicate", bash_command=f"logicalrep replicate {PLACE} --once")

with DAG(
    "logicalrep_shop_verify", schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1
) as nightly:
    BashOperator(task_id="verify", bash_command=f"logicalrep verify {PLACE}")
