# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' manifests: they keep Kubernetes' schema, have probes that the daemon answers, limits,
and a network policy. The long tier (VOXELD_PACKAGE_TESTS) has kubectl, which renders them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness import SLOW, SOURCE, http_call, running

MANIFESTS = SOURCE / "deploy" / "kubernetes"
KINDS = {
    "state": {"ConfigMap", "Service", "StatefulSet", "NetworkPolicy"},
    "stateless": {"ConfigMap", "Service", "Deployment", "NetworkPolicy", "PodDisruptionBudget"},
}
OWNERS = {"state": "StatefulSet", "stateless": "Deployment"}
POD_ADDRESS = "10.244.1.7:8420"  # kubelet asks a pod by its address


def complaints(*paths: Path) -> str:
    """Returns what the validator says against manifests."""
    done = subprocess.run(
        [Path(sys.executable).parent / "kubernetes-validate", "--strict", *paths],
        capture_output=True, text=True, timeout=300 * SLOW, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stdout + done.stderr


def objects(text: str) -> dict[str, dict[str, Any]]:
    return {o["kind"]: o for o in yaml.safe_load_all(text)}


def of_files(name: str) -> dict[str, dict[str, Any]]:
    """What kustomize is given: the resources, and for a GPU the patch over them."""
    listed = yaml.safe_load((MANIFESTS / name / "kustomization.yaml").read_text())
    return objects("\n---\n".join((MANIFESTS / name / r).read_text() for r in listed["resources"]))


def container_of(owner: dict[str, Any]) -> dict[str, Any]:
    (container,) = owner["spec"]["template"]["spec"]["containers"]
    return container


def check_workload(found: dict[str, dict[str, Any]], name: str) -> None:
    owner = found[OWNERS[name]]
    pod = owner["spec"]["template"]["spec"]
    container = container_of(owner)
    probes = {kind: container[f"{kind}Probe"]["httpGet"] for kind in
              ("startup", "readiness", "liveness")}  # fmt: skip
    assert probes == {
        "startup": {"path": "/v1/health/ready", "port": "http"},
        "readiness": {"path": "/v1/health/ready", "port": "http"},
        "liveness": {"path": "/v1/health/live", "port": "http"},
    }
    startup = container["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 1800
    assert container["readinessProbe"]["failureThreshold"] == 1
    assert {"name": "http", "containerPort": 8420} in container["ports"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert container["resources"]["limits"]["memory"]
    if name == "state":
        assert owner["spec"]["replicas"] == 1 and owner["spec"]["volumeClaimTemplates"]
    else:
        assert owner["spec"]["replicas"] == 2


def check_policy(found: dict[str, dict[str, Any]], name: str) -> None:
    """It holds for the pods of the workload, lets nothing out, and clients in by their label."""
    policy = found["NetworkPolicy"]["spec"]
    labels = found[OWNERS[name]]["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["policyTypes"] == ["Ingress", "Egress"] and "egress" not in policy
    clients, metrics = policy["ingress"]
    assert clients["from"] == [{"podSelector": {"matchLabels": {"voxeld-client": "true"}}}]
    assert [p["port"] for p in clients["ports"]] == [8420, 8421]
    assert metrics["from"] == [{"namespaceSelector": {"matchLabels": {"voxeld-metrics": "true"}}}]
    assert [p["port"] for p in metrics["ports"]] == [8420]
    assert found["Service"]["spec"]["selector"] == labels


@pytest.mark.parametrize("name", OWNERS)
def test_manifests_keep_the_schema_and_have_probes_and_a_policy(name: str) -> None:
    listed = yaml.safe_load((MANIFESTS / name / "kustomization.yaml").read_text())
    assert complaints(*(MANIFESTS / name / r for r in listed["resources"])) == ""
    found = of_files(name)
    assert set(found) == KINDS[name] - {"ConfigMap"}
    check_workload(found, name)
    check_policy(found, name)


def test_validator_finds_what_kubernetes_does_not_know(directory: Path) -> None:
    text = (MANIFESTS / "stateless/deployment.yaml").read_text()
    for right, wrong in (("replicas: 2", "replicas: two"), ("readinessProbe:", "readyProbe:")):
        assert text.count(right) == 1
        path = directory / "wrong.yaml"
        path.write_text(text.replace(right, wrong))
        assert complaints(path) != ""


@pytest.mark.parametrize("name", OWNERS)
def test_manifests_for_gpus_ask_for_one(name: str) -> None:
    folder = MANIFESTS / f"{name}-gpu"
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert listed["bases"] == [f"../{name}"] and listed["patchesStrategicMerge"] == ["gpu.yaml"]
    patch = yaml.safe_load((folder / "gpu.yaml").read_text())
    owner = of_files(name)[OWNERS[name]]
    assert (patch["kind"], patch["metadata"]) == (owner["kind"], owner["metadata"])
    assert container_of(patch)["name"] == container_of(owner)["name"]
    assert container_of(patch)["resources"] == {"limits": {"nvidia.com/gpu": 1}}


@pytest.mark.parametrize("name", OWNERS)
def test_daemon_answers_the_probes_of_its_manifest(name: str, directory: Path) -> None:
    """With the names and tokens of the manifest's configuration: a probe has neither."""
    given = json.loads((MANIFESTS / name / "voxeld.json").read_text())
    tokens = directory / "tokens"
    tokens.write_text(f"robot read {'0' * 64}\n")
    tokens.chmod(0o600)
    config = {"http": given["http"], "auth": {"tokens_file": str(tokens)},
              "data_dir": str(directory / "data") if "data_dir" in given else ""}  # fmt: skip
    container = container_of(of_files(name)[OWNERS[name]])
    with running(directory, config) as daemon:
        for kind in ("startup", "readiness", "liveness"):
            path = container[f"{kind}Probe"]["httpGet"]["path"]
            reply = http_call(daemon, "GET", path, headers={"Host": POD_ADDRESS})
            assert reply.status == 200, (kind, reply.body)
        reply = http_call(daemon, "GET", "/v1/status", headers={"Host": POD_ADDRESS})
        assert reply.status in (401, 403)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@pytest.mark.parametrize("name", ["state", "stateless", "state-gpu", "stateless-gpu"])
def test_manifests_that_kustomize_renders_keep_the_schema(name: str, directory: Path) -> None:
    done = subprocess.run(["kubectl", "kustomize", MANIFESTS / name], capture_output=True,
                          text=True, timeout=300 * SLOW, check=True)  # fmt: skip
    rendered = directory / "rendered.yaml"
    rendered.write_text(done.stdout)
    assert complaints(rendered) == ""
    plain = name.removesuffix("-gpu")
    found = objects(done.stdout)
    assert set(found) == KINDS[plain]
    check_workload(found, plain)
    check_policy(found, plain)
    container = container_of(found[OWNERS[plain]])
    limits = container["resources"]["limits"]
    assert limits.get("nvidia.com/gpu") == (1 if name.endswith("-gpu") else None)
    backend = "-cuda" if name.endswith("-gpu") else ""
    image = rf"registry\.example\.org/voxeld:\d+\.\d+\.\d+{backend}"
    assert re.fullmatch(image, container["image"])
    (used,) = (v["configMap"]["name"] for v in found[OWNERS[plain]]["spec"]["template"]["spec"]
               ["volumes"] if "configMap" in v)  # fmt: skip
    assert found["ConfigMap"]["metadata"]["name"] == used != "voxeld-config"
