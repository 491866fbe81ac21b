"""The chart refuses wrong values, with reasons, before anything reaches a cluster."""

from __future__ import annotations

import pytest

from tests.deploy.charts import CHART, RELEASE, helm

_SIGN_IN = ("issuers.corp.url=https://corp", "issuers.corp.audience=a")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["replica=3"], "replica is not allowed"),
        (["replicas=0"], "replicas"),
        (["replicas=two"], "replicas"),
        (["image.name=x"], "name is not allowed"),
        (["image.pullPolicy=Sometimes"], "image.pullPolicy"),
        (["image.tag=a b"], "image.tag"),
        # A URL instead of the name of a secret.
        (["database.secretName=postgresql://u:p@db/windrow"], "database.secretName"),
        (["database.url=postgresql://u:p@db/windrow"], "url is not allowed"),
        (["redis.password=x"], "password is not allowed"),
        (["database.secretName="], "embedded.enabled"),
        (["redis.secretName="], "redis.secretName is empty"),
        (["redis.secretName=", "replicas=1", "autoscaling.enabled=true"], "redis.secretName"),
        (["embedded.enabled=true"], "one replica"),
        (["embedded.enabled=true", "replicas=1", "autoscaling.enabled=true"], "one replica"),
        (["embedded.size=big"], "embedded.size"),
        (["backup.enabled=true", "embedded.enabled=true", "replicas=1"], "no PostgreSQL to dump"),
        (["backup.schedule=daily"], "backup.schedule"),
        (["backup.keep=0"], "backup.keep"),
        (["maintenance.job.enabled=true"], "maintenance.job.image is empty"),
        (
            ["maintenance.job.enabled=true", "maintenance.job.image=spark:4.3"],
            "maintenance.job.tokenSecretName is empty",
        ),
        (["maintenance.job.tables=sales*"], "maintenance.job.tables"),
        (["backup.extraEnv[0].name=PGPASSWORD", "backup.extraEnv[0].value=x"], "with valueFrom"),
        (["allowedLocations=null"], "allowedLocations"),
        (["allowedLocations={tables}"], "allowedLocations.0"),
        (["allowedLocations={ftp://lake}"], "allowedLocations.0"),
        (["allowedLocations={s3://key:secret@lake}"], "allowedLocations.0"),
        (["plannerThreads=0"], "plannerThreads"),
        (["maxWaiting=-1"], "maxWaiting"),
        (["limits.maxPlanFile=1"], "maxPlanFile is not allowed"),
        (["limits.maxPageGroups=20000"], "limits.maxPageGroups"),
        (["limits.planTtl=1 hour"], "limits.planTtl"),
        (["metrics.alerts.enabled=true"], "metrics.enabled is false"),
        (["metrics.port=8080"], "metrics.port"),
        (["audit.maxAge=1 year"], "audit.maxAge"),
        (["history.maxAge=7d"], "history.maxAge"),
        (["serveWithoutAuthentication=yes"], "serveWithoutAuthentication"),
        (["issuers.corp.url=http://corp", "issuers.corp.audience=a"], "issuers"),
        (["issuers.corp.url=https://corp"], "audience"),
        (["issuers.Corp.url=https://corp", "issuers.Corp.audience=a"], "issuers"),
        ([*_SIGN_IN, "issuers.corp.sign_in.client_id=c"], "publicUrl is empty"),
        (
            [*_SIGN_IN, "publicUrl=https://w", "issuers.corp.sign_in.client_secret=c"],
            "client_secret",
        ),
        ([*_SIGN_IN, "publicUrl=https://w", "issuers.corp.sign_in.title=c"], "client_id"),
        (["publicUrl=http://windrow.example.com"], "publicUrl"),
        (["publicUrl=https://u:p@windrow.example.com"], "publicUrl"),
        (
            [
                "extraEnv[0].name=WINDROW_ISSUERS__CORP__SIGN_IN__CLIENT_SECRET",
                "extraEnv[0].value=x",
            ],
            "with valueFrom",
        ),
        (["extraEnv[0].value=x"], "name is required"),
        (
            ["extraEnv[0].name=WINDROW_DATABASE_URL", "extraEnv[0].value=x"],
            "name a secret in database or redis",
        ),
        (["extraEnv[0].name=AWS_SECRET_ACCESS_KEY", "extraEnv[0].value=x"], "with valueFrom"),
        (["extraEnv[0].name=WINDROW_PORT", "extraEnv[0].value=1"], "WINDROW_PORT"),
        (["extraVolumeMounts[0].name=x", "extraVolumeMounts[0].mountPath=data"], "mountPath"),
        (["runAs.user=0"], "runAs.user"),
        (["runAs.supplementalGroups={0}"], "runAs.supplementalGroups"),
        (["service.type=ExternalName"], "service.type"),
        (["service.port=0"], "service.port"),
        (["ingress.enabled=true"], "ingress.host is empty"),
        (["ingress.host=https://windrow"], "ingress.host"),
        (["httpRoute.enabled=true"], "httpRoute.parentRefs is empty"),
        (["httpRoute.hostnames={https://windrow}"], "httpRoute.hostnames"),
        (["httpRoute.requestTimeout=5 minutes"], "httpRoute.requestTimeout"),
        (["networkPolicy.egress.postgres.ports={5432}"], "postgres is not allowed"),
        (["networkPolicy.egress.database.ports={0}"], "networkPolicy.egress.database.ports"),
        (["priorityClassName=very high"], "priorityClassName"),
        (
            ["autoscaling.enabled=true", "autoscaling.minReplicas=9"],
            "autoscaling.minReplicas is above",
        ),
        (["resources.requests.memory=lots"], "resources.requests.memory"),
        (["resources.memory=1Gi"], "memory is not allowed"),
        (["terminationGracePeriodSeconds=5"], "terminationGracePeriodSeconds"),
        (["podLabels.app\\.kubernetes\\.io/name=x"], "podLabels"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_wrong_value_is_refused_and_named(settings: list[str], said: str) -> None:
    given = [word for setting in settings for word in ("--set", setting)]

    done = helm("template", RELEASE, str(CHART), *given)

    assert done.returncode != 0
    assert said in done.stderr


def test_lint_refuses_what_template_refuses() -> None:
    done = helm("lint", str(CHART), "--set", "replicas=two")

    assert done.returncode != 0
    assert "replicas" in done.stdout


def test_an_old_kubernetes_is_refused() -> None:
    done = helm("template", RELEASE, str(CHART), "--kube-version", "1.26.0")

    assert done.returncode != 0
    assert "1.27" in done.stderr
