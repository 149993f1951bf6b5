# SPDX-License-Identifier: Apache-2.0
"""voxelctl COMMAND --request FILE: the same request in the same JSON as over HTTP, so its reply, or
what is wrong, must be the one that the daemon's HTTP side gives."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import BIN, SLOW, SOURCE, Daemon, http_call, running

FACES = {p.stem: tomllib.loads(p.read_text()) for p in SOURCE.glob("proto/gen/faces/*.toml")}
OPTIONS = (SOURCE / "tests/data/names/options.txt").read_text().splitlines()
# Times differ from call to call, and who makes what by the transport.
CHANGING = re.compile(r"Ms$|Ns$|Bytes$|^replayed$|^generation$|^owner$|^eraseEpoch$")


def face_commands() -> dict[str, str]:
    """"map create" -> map_create, for each command that is one call."""
    found = {}
    for noun, face in FACES.items():
        ctl = face.get("ctl", {})
        for command in ctl.get("commands", []):
            if (ctl.get("runs") or ctl.get("requests")) and "method" in command:
                word = "" if command.get("top") else f"{ctl.get('word', noun)} "
                found[word + command["name"]] = command["method"]
    return found


COMMANDS = face_commands()


def settled(value: Any) -> Any:
    """Without what differs from call to call."""
    if isinstance(value, dict):
        return {k: settled(v) for k, v in value.items() if not CHANGING.search(k)}
    return [settled(v) for v in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Daemon, Path]]:
    """Two daemons that get the same requests, one from voxelctl and one over HTTP."""
    with (
        running(tmp_path_factory.mktemp("ctl")) as by_ctl,
        running(tmp_path_factory.mktemp("http")) as by_http,
    ):
        yield by_ctl, by_http, tmp_path_factory.mktemp("files")


def ctl(
    daemon: Daemon, command: str, *words: str, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "voxelctl", *command.split(), *words, "--url", daemon.ipc], input=stdin,
        capture_output=True, text=True, timeout=120 * SLOW, check=False,
    )  # fmt: skip


def ask(pair: tuple[Daemon, Daemon, Path], command: str, request: dict[str, Any]) -> Any:
    by_ctl, by_http, folder = pair
    path = folder / "request.json"
    path.write_text(json.dumps(request))
    done = ctl(by_ctl, command, "--request", str(path))
    expected = http_call(by_http, "POST", f"/v1/{COMMANDS[command]}", request)
    assert done.returncode == 0 and expected.status == 200, (done.stderr, expected.body)
    reply = json.loads(done.stdout)
    assert settled(reply) == settled(expected.json())
    return reply


BALL = {"centre": {"x": 1, "z": 0.5}, "radius": 0.5}


def test_replies_are_those_of_http(pair: tuple[Daemon, Daemon, Path]) -> None:
    ask(pair, "scene create", {"name": "yard", "spec": {"voxelSizeM": 0.1, "materialBits": 4}})
    edit = {"name": "yard", "operations": [{"ball": BALL, "material": 3}]}
    reply = ask(pair, "scene edit", edit)
    assert int(reply["change"]["nAdded"]) > 500
    view = {"name": "yard", "width": 32, "height": 24, "encode": "RENDER_PNG"}
    picture = ask(pair, "scene render", view)
    assert picture["image"] and ask(pair, "scene show", view)["image"] == picture["image"]
    info = ask(pair, "scene info", {"name": "yard"})  # with the digest of its voxels
    assert info["scene"]["nOccupied"] == reply["change"]["nAdded"]
    spec = {"keyDtype": "INT32", "nComponents": 3, "values": [{"name": "n", "dtype": "UINT32"}]}
    ask(pair, "map create", {"name": "drive", "spec": spec})
    keys = {"dtype": "INT32", "shape": [2, 3], "values": [1, 2, 3, 1, 2, 3]}
    reply = ask(pair, "map insert", {"name": "drive", "keys": keys})
    assert reply["isNew"]["values"] == [1, 0]
    ask(pair, "map list", {})
    ask(pair, "map drop", {"name": "drive"})


def test_request_comes_from_standard_input(pair: tuple[Daemon, Daemon, Path]) -> None:
    done = ctl(pair[0], "scene list", "--request", "-", stdin="{}")
    assert done.returncode == 0 and "scenes" in json.loads(done.stdout), done.stderr


@pytest.mark.parametrize(
    ("command", "request_text", "field"),
    [
        ("scene edit", '{"name": "yard", "operations": [{"ball": {"radus": 1}}]}',
         "operations[0].ball.radus"),
        ("scene edit", '{"name": "yard", "operations": [{"ball": {"radius": "far"}}]}',
         "operations[0].ball.radius"),
        ("scene edit", '{"name": "yard", "operations": [{"action": "SCENE_FLIP"}]}',
         "operations[0].action"),
        ("scene edit", '{"name": "yard", "operations": [{"ball": {"radius": 1}}]}',
         "operations[0].ball.centre"),
        ("scene edit", '{"name": "yard", "operations": [{}]}', "operations[0]"),
        ("map create", '{"name": "Drive"}', "name"),
        ("map create", '{"name": "drive", "spec": {"nComponents": 9}}', "spec.n_components"),
        ("map create", "[]", ""),
        ("map create", '{"name": ', ""),
    ],
)  # fmt: skip
def test_error_names_the_field_as_http_does(
    pair: tuple[Daemon, Daemon, Path], command: str, request_text: str, field: str
) -> None:
    by_ctl, by_http, folder = pair
    path = folder / "wrong.json"
    path.write_text(request_text)
    done = ctl(by_ctl, command, "--request", str(path), "--json")
    headers = {"Content-Type": "application/json"}
    reply = http_call(by_http, "POST", f"/v1/{COMMANDS[command]}", request_text, headers)
    expected, error = reply.json(), json.loads(done.stderr)
    assert done.returncode == 1 and not done.stdout
    assert expected["field"] == field
    for member in ("code", "message"):
        assert error[member] == expected[member]
    assert error.get("field", "") == field
    text = ctl(by_ctl, command, "--request", str(path)).stderr
    assert expected["message"] in text and field in text


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_each_command_of_one_call_takes_a_request_and_nothing_beside_it(
    pair: tuple[Daemon, Daemon, Path], command: str
) -> None:
    assert f"voxelctl {command} --request" in OPTIONS
    by_ctl, _, folder = pair
    done = ctl(by_ctl, command, "yard", "--request", "no.json")
    assert done.returncode == 2 and "--request takes the place of all words" in done.stderr
    path = folder / "bad.json"
    path.write_text('{"no_such_field": 1}')
    done = ctl(by_ctl, command, "--request", str(path))
    assert done.returncode == 1 and "no_such_field" in done.stderr


def test_request_excludes_options_and_is_for_commands_of_one_call(
    pair: tuple[Daemon, Daemon, Path],
) -> None:
    done = ctl(pair[0], "map create", "--request", "r.json", "--capacity", "9")
    assert done.returncode == 2 and "--request excludes --capacity" in done.stderr
    done = ctl(pair[0], "map merge", "--request", "r.json")
    assert done.returncode == 2 and "there is no option --request" in done.stderr
    done = ctl(pair[0], "map create", "--request", "nowhere.json")
    assert done.returncode == 1 and "nowhere.json: No such file" in done.stderr


def test_change_from_a_request_takes_effect_once(pair: tuple[Daemon, Daemon, Path]) -> None:
    """It carries a sequence number as other changes do: what the daemon answers says so."""
    by_ctl, _, folder = pair
    path = folder / "snapshot.json"
    path.write_text(json.dumps({"name": "once", "spec": {"voxelSizeM": 1}}))
    assert ctl(by_ctl, "scene create", "--request", str(path)).returncode == 0
    path.write_text(json.dumps({"name": "once", "ifVersion": "77", "operations": [{"ball": BALL}]}))
    done = ctl(by_ctl, "scene edit", "--request", str(path), "--json")
    assert done.returncode == 1 and json.loads(done.stderr)["code"] == "ABORTED"
