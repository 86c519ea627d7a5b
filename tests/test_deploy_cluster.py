"""The Compose file and the Kubernetes manifests start roles as the command line takes them, and hang together."""

from __future__ import annotations

import argparse
import importlib
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from leverwatch import config, exposure, serving
from leverwatch.config import Config
from leverwatch.locks import Locks

DEPLOY = Path(__file__).parents[1] / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
FOREIGN = {"Kustomization", "PodMonitor"}  # kinds of others, which Kubernetes' own schemas do not have
ROLES = {"collect", "work", "serve"}
PORTS = {"otlp-grpc": "grpc_port", "otlp-http": "otlp_http_port", "http": "port"}
PROBES = {"startupProbe", "readinessProbe", "livenessProbe"}
KUBERNETES = "1.34"
STOP_S = serving.DRAIN_S + 15
"""What a process may take to end: what it works off, and what its listeners and its jobs take to close."""
WRITTEN = {"/tmp", "/var/cache/leverwatch"}
"""Where every role writes, whatever its data folder is: Ray's files and temporary ones, and what Numba compiles."""


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def of_kind(*kinds: str) -> list[Any]:
    return [found for found in map(read, MANIFESTS) if found["kind"] in kinds]


WORKLOADS = of_kind("Deployment", "StatefulSet")
CONTAINERS = [one["spec"]["template"]["spec"]["containers"][0] for one in WORKLOADS]
CONFIG = of_kind("ConfigMap")[0]["data"]["leverwatch.toml"]
COMPOSE = read(DEPLOY / "compose.yaml")
SERVICES = {name: one for name, one in COMPOSE["services"].items() if one["image"] == "leverwatch"}
TOKENS = dict.fromkeys(("INGEST_TOKEN", "READ_TOKEN", "ADMIN_TOKEN"), "0123456789abcdef")


def parsed(words: list[str]) -> argparse.Namespace:
    """A role's words as its command takes them."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    importlib.import_module(f"leverwatch.cli.{words[0]}").add(parser.add_subparsers())
    return parser.parse_args(words)


def configured(tmp_path: Path, text: str) -> Config:
    (tmp_path / "leverwatch.toml").write_text(text, encoding="utf-8")
    return config.read(None, tmp_path, {})


def uncommented(text: str) -> str:
    return re.sub(r"^(\s*)# (\[|\w+ = )", r"\1\2", text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_kubernetes_takes_every_manifest(path: Path) -> None:
    checker = pytest.importorskip("kubernetes_validate", reason="no schemas: pip install kubernetes-validate")
    manifest = read(path)
    if manifest["kind"] not in FOREIGN:
        checker.validate(manifest, KUBERNETES, strict=True)


def test_a_word_that_kubernetes_does_not_know_would_be_seen() -> None:
    checker = pytest.importorskip("kubernetes_validate", reason="no schemas: pip install kubernetes-validate")
    manifest = of_kind("Deployment")[0]
    manifest["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(checker.ValidationError):
        checker.validate(manifest, KUBERNETES, strict=True)


def test_the_kustomization_names_every_manifest_and_no_other() -> None:
    (listed,) = of_kind("Kustomization")
    assert sorted([*listed["resources"], "kustomization.yaml"]) == [path.name for path in MANIFESTS]
    assert {one["metadata"]["namespace"] for one in map(read, MANIFESTS) if one["kind"] not in ("Namespace", "Kustomization")} == {
        listed["namespace"]
    }


@pytest.mark.parametrize("words", [*(one["args"] for one in CONTAINERS), *(one["command"] for one in SERVICES.values())], ids=" ".join)
def test_every_role_is_started_with_options_that_it_has(words: list[str]) -> None:
    assert words[0] in ROLES
    assert parsed(words).config == "/etc/leverwatch/leverwatch.toml"


def test_all_roles_are_there() -> None:
    assert {one["args"][0] for one in CONTAINERS} == {one["command"][0] for one in SERVICES.values()} == ROLES


@pytest.mark.parametrize("text", [CONFIG, COMPOSE["configs"]["leverwatch"]["content"]], ids=["kubernetes", "compose"])
def test_the_configuration_is_taken_with_and_without_what_it_offers_in_comments_and_leaves_no_port_open(tmp_path: Path, text: str) -> None:
    offered = configured(tmp_path, uncommented(text))
    assert (offered.store.is_lake, bool(offered.kafka.brokers)) == (True, True)
    plain = configured(tmp_path, text)
    where = msgspec.structs.replace(plain.serve, host="0.0.0.0")
    exposure.check(where, Locks(plain, TOKENS).tokens, None)


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda one: one["name"])
def test_ports_variables_and_mounts_of_a_container_are_those_of_the_configuration(tmp_path: Path, container: dict[str, Any]) -> None:
    serve = configured(tmp_path, CONFIG).serve
    for port in container.get("ports", ()):
        assert port["containerPort"] == getattr(serve, PORTS[port["name"]])
    names = {one["name"] for one in container.get("env", ())}
    assert names == TOKENS.keys()
    if container["args"][0] == "work":
        assert parsed(container["args"]).metrics_port == serve.port
    assert [name for name in names if name.startswith("LEVERWATCH_") and name not in config.variables()] == []
    mounts = {one["mountPath"] for one in container["volumeMounts"]}
    data = parsed(container["args"]).data
    assert "/etc/leverwatch" in mounts
    assert data is None or data in mounts


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one["metadata"]["name"])
def test_nothing_runs_as_root_or_writes_outside_of_volumes(workload: dict[str, Any]) -> None:
    pod = workload["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    volumes = {one["name"]: one for one in pod["volumes"]} | {
        one["metadata"]["name"]: one for one in workload["spec"].get("volumeClaimTemplates", ())
    }
    for container in (*pod["initContainers"], *pod["containers"]):
        allowed = container["securityContext"]
        assert (allowed["readOnlyRootFilesystem"], allowed["allowPrivilegeEscalation"], allowed["capabilities"]) == (
            True,
            False,
            {"drop": ["ALL"]},
        )
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes.keys()
    mounts = {one["mountPath"]: volumes[one["name"]] for one in pod["containers"][0]["volumeMounts"]}
    assert mounts.keys() >= WRITTEN
    assert all("emptyDir" in mounts[path] for path in WRITTEN)


def test_each_role_may_be_reached_at_the_ports_it_has_and_no_other() -> None:
    open_at = {
        one["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]: [
            port["port"] for rule in one["spec"].get("ingress", ()) for port in rule["ports"]
        ]
        for one in of_kind("NetworkPolicy")
    }
    assert open_at == {
        one["metadata"]["labels"]["app.kubernetes.io/component"]: [
            port["name"] for port in one["spec"]["template"]["spec"]["containers"][0].get("ports", ())
        ]
        for one in WORKLOADS
    }


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one["metadata"]["name"])
def test_a_workload_selects_its_own_pods_bounds_them_and_is_probed_where_it_answers(workload: dict[str, Any]) -> None:
    pod = workload["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert workload["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"] == workload["metadata"]["labels"]
    assert container["resources"].keys() == {"requests", "limits"}
    assert pod["spec"]["terminationGracePeriodSeconds"] >= STOP_S
    probes = PROBES & container.keys()
    assert probes == ({"livenessProbe"} if container["args"][0] == "work" else PROBES)
    ports = {port["name"] for port in container.get("ports", ())}
    for name in probes:
        assert container[name]["httpGet"] == {"path": "/readyz" if name == "readinessProbe" else "/healthz", "port": "http"}
        assert "http" in ports


def test_services_monitors_and_budgets_find_pods_and_ports_that_there_are() -> None:
    pods = [(one["spec"]["template"]["metadata"]["labels"], one["spec"]["template"]["spec"]["containers"][0]) for one in WORKLOADS]
    for service in of_kind("Service"):
        (found,) = [container for labels, container in pods if service["spec"]["selector"] == labels]
        names = {port["name"] for port in found["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= names
    (budget,), (monitor,), (scaler,) = of_kind("PodDisruptionBudget"), of_kind("PodMonitor"), of_kind("HorizontalPodAutoscaler")
    assert budget["spec"]["selector"]["matchLabels"] in [labels for labels, _ in pods]
    chosen = set(monitor["spec"]["selector"]["matchExpressions"][0]["values"])
    watched = [container for labels, container in pods if labels["app.kubernetes.io/component"] in chosen]
    assert len(watched) == len(chosen)
    for endpoint in monitor["spec"]["podMetricsEndpoints"]:
        assert all(endpoint["port"] in {port["name"] for port in container["ports"]} for container in watched)
    target = scaler["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) in [(one["kind"], one["metadata"]["name"]) for one in WORKLOADS]


def test_compose_publishes_ports_that_roles_listen_on_each_once_and_gives_every_role_its_tokens() -> None:
    published = [port.split(":") for one in SERVICES.values() for port in one.get("ports", ())]
    assert len({outside for outside, _ in published}) == len(published)
    assert {inside for _, inside in published} == {"4317", "4318", "8080"}
    volumes = {volume.split(":")[0] for one in SERVICES.values() for volume in one["volumes"]}
    assert volumes == COMPOSE["volumes"].keys()
    assert all(one["environment"].keys() == TOKENS.keys() for one in SERVICES.values())
    assert all(not name.startswith("LEVERWATCH_") for name in TOKENS)


@pytest.mark.parametrize("service", SERVICES.values(), ids=lambda one: one["command"][0])
def test_compose_lets_nothing_write_outside_of_volumes_and_waits_for_the_end(service: dict[str, Any]) -> None:
    assert service["read_only"]
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert {*service["tmpfs"], *(volume.split(":")[1] for volume in service["volumes"])} >= WRITTEN
    assert int(service["stop_grace_period"].removesuffix("s")) >= STOP_S
    assert ("healthcheck" in service) == (service["command"][0] != "work")


def test_what_was_built_here_and_what_git_keeps_stay_out_of_the_image() -> None:
    left_out = (DEPLOY.parent / ".dockerignore").read_text(encoding="utf-8").split()
    ignored = (DEPLOY.parent / ".gitignore").read_text(encoding="utf-8").split()
    folders = {line.strip("/") for line in ignored if line.endswith("/")} - {"__pycache__", "*.egg-info"}
    assert {*left_out} >= {".git", "**/__pycache__", *folders}


def test_the_image_has_the_ports_and_the_folders_that_roles_ask_for() -> None:
    image = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert "EXPOSE 4317 4318 8080" in image
    assert "[cluster,observe]" in image
    assert "USER leverwatch" in image
    assert "HOME=/tmp " in image
    assert {one["spec"]["template"]["spec"]["securityContext"]["runAsUser"] for one in WORKLOADS} == {10001}
    assert "--uid 10001" in image
