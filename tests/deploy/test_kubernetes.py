"""The manifests: what Kubernetes takes, and numbers that fit each other and the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from daemon.admin.status.observer import ANSWER_WITHIN_S
from daemon.app.supervisor import STOP_RESERVE_S
from daemon.config.pipelines import PipelineSection
from tests.deploy.conftest import Check

DEPLOY = Path(__file__).parents[2] / "deploy"
FILES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
OBJECTS: dict[str, Any] = {
    found["kind"]: found for file in FILES for found in yaml.safe_load_all(file.read_text())
}
EXECUTORS: dict[str, Any] = {
    found["kind"]: found
    for found in yaml.safe_load_all((DEPLOY / "kubernetes-executors" / "rbac.yaml").read_text())
}
MONITOR: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus" / "podmonitor.yaml").read_text())
SET = OBJECTS["StatefulSet"]["spec"]
POD = SET["template"]["spec"]
(CONTAINER,) = POD["containers"]
TEXT: str = OBJECTS["ConfigMap"]["data"]["config.toml"]
CONFIG = tomllib.loads(TEXT)

VERSIONS = [
    version
    for version in kubernetes_validate.utils.all_versions()
    if tuple(map(int, version.split(".")[:2])) >= (1, 27)
]
UNITS = {"Mi": 1 << 20, "Gi": 1 << 30, "m": 1 << 20, "g": 1 << 30}


def size(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(\w+)", text).groups()  # type: ignore[union-attr]
    return int(number) * UNITS[unit]


@pytest.mark.parametrize("kind", OBJECTS | EXECUTORS)
def test_kubernetes_takes_each_object(kind: str) -> None:
    """Strictly: no unknown field, in any version from 1.27 on."""
    for version in VERSIONS:
        kubernetes_validate.validate((OBJECTS | EXECUTORS)[kind], version, strict=True)


def test_executors_rights_are_bound_to_one_account_in_one_namespace() -> None:
    """No wildcard, nothing of the whole cluster, and the names lead to each other."""
    role, binding = EXECUTORS["Role"], EXECUTORS["RoleBinding"]
    named = EXECUTORS["ServiceAccount"]["metadata"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (subject,) = binding["subjects"]
    assert (subject["name"], subject["namespace"]) == (named["name"], named["namespace"])
    assert {found["metadata"]["namespace"] for found in EXECUTORS.values()} == {"binlogd"}
    for rule in role["rules"]:
        assert rule["apiGroups"] == [""]
        assert "*" not in rule["resources"] + rule["verbs"]
    assert POD["automountServiceAccountToken"] is False  # where Spark is in the pod alone


def test_a_pod_monitor_finds_the_pods_and_their_port() -> None:
    """Its kind is the operator's: Kubernetes' schemas have none of it."""
    (endpoint,) = MONITOR["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in {port["name"] for port in CONTAINER["ports"]}
    annotations = SET["template"]["metadata"]["annotations"]
    assert endpoint["path"] == annotations["prometheus.io/path"]
    labels = SET["template"]["metadata"]["labels"]
    assert MONITOR["spec"]["selector"]["matchLabels"] == labels
    assert MONITOR["metadata"]["namespace"] == OBJECTS["StatefulSet"]["metadata"]["namespace"]


def test_a_misspelt_field_is_seen() -> None:
    """By the same check."""
    wrong = OBJECTS["PodDisruptionBudget"] | {"spec": {"maxUnavailible": 1}}
    with pytest.raises(kubernetes_validate.ValidationError, match="maxUnavailible"):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_the_configuration_is_good(check: Check) -> None:
    """Status 0; warned is only of the port and of a file that others may read, if any."""
    result = check(TEXT)
    assert result.exit_code == 0, result.stderr
    known = ("metrics.listen", "temporary files")
    said = result.stderr.splitlines()
    assert [line for line in said if not any(part in line for part in known)] == []
    assert "placeholder" not in result.output


def test_the_drain_is_left_its_time() -> None:
    """SIGKILL comes after the drain, the last commit and the end of the JVM."""
    least = CONFIG["daemon"]["drain_timeout_s"] + STOP_RESERVE_S
    assert POD["terminationGracePeriodSeconds"] > least


def test_probes_fit_what_they_ask() -> None:
    """An answer takes up to a second; the patience with a stuck actor is the daemon's."""
    startup, live = CONTAINER["startupProbe"], CONTAINER["livenessProbe"]
    ready = CONTAINER["readinessProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 300
    assert live["periodSeconds"] * live["failureThreshold"] < CONFIG["daemon"]["stuck_after_s"] / 2
    for probe in (startup, live, ready):
        assert ANSWER_WITHIN_S < probe["timeoutSeconds"] <= probe["periodSeconds"]
        assert probe["httpGet"]["port"] == "metrics"
    paths = [probe["httpGet"]["path"] for probe in (startup, live, ready)]
    assert paths == ["/healthz", "/healthz", "/readyz"]


def test_the_port_is_the_same_everywhere() -> None:
    """In the configuration, the container, the annotation and the Service."""
    (port,) = CONTAINER["ports"]
    (service,) = OBJECTS["Service"]["spec"]["ports"]
    annotations = SET["template"]["metadata"]["annotations"]
    assert CONFIG["metrics"]["listen"] == f"0.0.0.0:{port['containerPort']}"
    assert annotations["prometheus.io/port"] == str(port["containerPort"])
    assert (service["port"], service["targetPort"]) == (port["containerPort"], port["name"])


def test_the_parts_fit_into_the_memory() -> None:
    """Python under load, the searches of the writers, the heap and the rest of the JVM."""
    resources = CONTAINER["resources"]
    limit = size(resources["limits"]["memory"])
    assert size(resources["requests"]["memory"]) == limit
    assert "cpu" not in resources["limits"]
    python = (768 << 20) + CONFIG["memory"]["budget_bytes"]
    heap = size(CONFIG["spark"]["conf"]["spark"]["driver"]["memory"])
    searches = CONFIG["daemon"]["writers"] * 80_000_000
    assert python + searches + heap + (700 << 20) < limit * 0.85


def test_the_claim_holds_staged_files_and_a_spill() -> None:
    """With as much again for dead letters and Spark's shuffles."""
    (claim,) = SET["volumeClaimTemplates"]
    quarantine = PipelineSection.model_fields["quarantine_bytes"].default
    needed = CONFIG["memory"]["staged_bytes"] + quarantine
    assert size(claim["spec"]["resources"]["requests"]["storage"]) >= 2 * needed


def test_cores_are_counted_once() -> None:
    """Python would count the node's, and so would the JVM."""
    writers = CONFIG["daemon"]["writers"]
    assert CONFIG["spark"]["master"] == f"local[{writers}]"
    options = CONFIG["spark"]["conf"]["spark"]["driver"]["extraJavaOptions"]
    assert f"-XX:ActiveProcessorCount={writers} " in options


def test_nothing_but_the_claim_and_tmp_is_written() -> None:
    """The root file system is read-only, so each folder must be below a writable mount."""
    context = CONTAINER["securityContext"]
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert POD["securityContext"]["runAsNonRoot"] is True
    writable = {m["mountPath"] for m in CONTAINER["volumeMounts"] if not m.get("readOnly")}
    assert writable == {"/var/lib/binlogd", "/tmp"}
    for key in ("state_dir", "staging_dir"):
        assert CONFIG["daemon"][key].startswith("/var/lib/binlogd/")


def test_members_are_static_and_their_volumes_their_own() -> None:
    """The id comes from the state directory; one in the configuration would be everybody's."""
    assert "instance" not in CONFIG["kafka"].get("group", {})
    (claim,) = SET["volumeClaimTemplates"]
    assert claim["metadata"]["name"] in {m["name"] for m in CONTAINER["volumeMounts"]}
    assert SET["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Retain", "whenScaled": "Retain",
    }  # fmt: skip
    assert CONFIG["sink"]["lake"]["catalog"]["type"] != "hadoop"


def test_all_select_the_same_pods() -> None:
    """In one namespace, by the labels that the pods have."""
    labels = SET["template"]["metadata"]["labels"]
    assert SET["selector"]["matchLabels"].items() <= labels.items()
    assert OBJECTS["Service"]["spec"]["selector"].items() <= labels.items()
    assert OBJECTS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert OBJECTS["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    assert {found["metadata"]["namespace"] for found in OBJECTS.values()} == {"binlogd"}
    assert SET["serviceName"] == OBJECTS["Service"]["metadata"]["name"]


def test_each_secret_is_made_by_the_page() -> None:
    """``kubectl create secret`` there has a file for each reference here."""
    named = set(re.findall(r"\$\{(?:credential:|file:/etc/binlogd/secrets/)([\w-]+)\}", TEXT))
    page = (DEPLOY / "README.md").read_text()
    assert named == set(re.findall(r"--from-file=([\w-]+)", page))
