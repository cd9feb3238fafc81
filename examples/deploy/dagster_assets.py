"""Dagster: the tables of a database as one asset, with an update every hour and a check that compares all rows."""

import subprocess

import dagster

PLACE = ["--dsn", "host=db dbname=shop user=replicator", "--to", "s3://lake/shop"]


@dagster.asset(retry_policy=dagster.RetryPolicy(max_retries=2, delay=300))
def shop() -> None:
    """The tables of the database shop, as of the start of the run."""
    subprocess.run(["logicalrep", "replicate", *PLACE, "--once"], check=True)


@dagster.asset_check(asset=shop)
def shop_is_equal() -> dagster.AssetCheckResult:
    """Every row equals the server's row."""
    done = subprocess.run(["logicalrep", "verify", *PLACE], capture_output=True, text=True, check=False)
    return dagster.AssetCheckResult(passed=done.returncode == 0, metadata={"output": done.stdout})


hourly = dagster.ScheduleDefinition(
    name="hourly", job=dagster.define_asset_job("replicate_shop", selection=[shop]), cron_schedule="0 * * * *"
)
definitions = dagster.Definitions(assets=[shop], asset_checks=[shop_is_equal], schedules=[hourly])
