"""What the image and its neighbours are made of, as far as that can be checked without building them."""

import json
import re
import shlex
from pathlib import Path

import pytest

from graphveil.cli.app import main

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
ROOT = Path(__file__).parents[2]


def instructions():
    """The lines of the Dockerfile, continued ones joined, as pairs of a word and the rest."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [tuple(line.split(None, 1)) for line in lines]


def is_a_command_line(words, tmp_path, monkeypatch):
    """Whether ``graphveil`` takes these words as far as running the service."""
    from graphveil.service import running

    ran = []
    monkeypatch.setattr(running, "run_service", lambda settings, host, port: ran.append((settings, host, port)))
    monkeypatch.setenv("GRAPHVEIL_FOLDER", str(tmp_path))
    with pytest.raises(SystemExit) as stop:
        main(words[1:])
    assert words[0] == "graphveil" and not stop.value.code
    return ran[0]


def test_everything_that_is_copied_into_the_image_is_there():
    copied = [shlex.split(rest) for word, rest in instructions() if word == "COPY"]
    own = [path for words in copied if not words[0].startswith("--from") for path in words[:-1]]
    assert own and all((ROOT / path).exists() for path in own)
    stages = {rest.split()[-1] for word, rest in instructions() if word == "FROM" and " AS " in rest}
    assert {words[0].removeprefix("--from=") for words in copied if words[0].startswith("--from")} == stages


def test_the_image_runs_a_command_that_exists(tmp_path, monkeypatch):
    words = json.loads(dict(instructions())["CMD"])
    _, host, port = is_a_command_line(words, tmp_path, monkeypatch)
    assert (host, str(port)) == ("0.0.0.0", dict(instructions())["EXPOSE"])
    environment = dict(re.findall(r"(\w+)=(\S+)", dict(instructions())["ENV"]))
    assert environment["GRAPHVEIL_FOLDER"] == dict(instructions())["VOLUME"]
    assert f":{port}/readyz" in dict(instructions())["HEALTHCHECK"]


def test_the_services_fit_together(tmp_path, monkeypatch):
    told = yaml.safe_load((ROOT / "compose.yaml").read_text())
    service, database = told["services"]["service"], told["services"]["database"]
    words = shlex.split(service["command"]) if isinstance(service.get("command"), str) else service.get("command")
    words = words or json.loads(dict(instructions())["CMD"])
    url = service["environment"]["GRAPHVEIL_STORE"].replace("${GRAPHVEIL_DB_PASSWORD:?set a password}", "secret")
    monkeypatch.setenv("GRAPHVEIL_STORE", url)
    settings, _, port = is_a_command_line(words, tmp_path, monkeypatch)
    user, name = (database["environment"][f"POSTGRES_{key}"] for key in ("USER", "DB"))
    assert settings.url == f"postgresql://{user}:secret@database/{name}" and "database" in service["depends_on"]
    assert all(one.startswith("127.0.0.1:") and one.endswith(f":{port}") for one in service["ports"])  # no TLS here
    volumes = {one.split(":")[0] for part in (service, database) for one in part["volumes"]}
    assert volumes == set(told["volumes"]) and (ROOT / service["build"] / "Dockerfile").exists()
    assert service["volumes"][0].split(":")[1] == dict(instructions())["VOLUME"] and service["read_only"]
