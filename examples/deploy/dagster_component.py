"""Dagster: a component that replicates a database, as one asset with a check of all rows and a run every hour.

The `defs.yaml` of a component's folder:

    type: my_project.dagster_component.Replication
    attributes:
      name: shop
      dsn: host=db dbname=shop user=replicator
      to: s3://lake/shop
"""

import subprocess

import dagster


class Replication(dagster.Component, dagster.Model, dagster.Resolvable):
    """The tables of a database, as of the start of a run."""

    name: str
    dsn: str
    to: str
    cron_schedule: str = "0 * * * *"

    def build_defs(self, context: dagster.ComponentLoadContext) -> dagster.Definitions:
        place = ["--dsn", self.dsn, "--to", self.to]

        @dagster.asset(name=self.name, retry_policy=dagster.RetryPolicy(max_retries=2, delay=300))
        def tables() -> None:
            subprocess.run(["logicalrep", "replicate", *place, "--once"], check=True)

        @dagster.asset_check(asset=tables, name="equal")
        def equal() -> dagster.AssetCheckResult:
            done = subprocess.run(["logicalrep", "verify", *place], capture_output=True, text=True, check=False)
            return dagster.AssetCheckResult(passed=done.returncode == 0, metadata={"output": done.stdout})

        job = dagster.define_asset_job(f"replicate_{self.name}", selection=[tables])
        schedule = dagster.ScheduleDefinition(job=job, cron_schedule=self.cron_schedule)
        return dagster.Definitions(assets=[tables], asset_checks=[equal], jobs=[job], schedules=[schedule])
