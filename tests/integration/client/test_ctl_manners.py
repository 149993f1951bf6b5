# SPDX-License-Identifier: Apache-2.0
"""voxelctl as its users meet it: defaults, colours, tables, JSON, what was meant, top and demo."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, SOURCE, Daemon, running

CTL = BIN / "voxelctl"
SCAN = SOURCE / "tests/data/spconv_benchmark_pc.npy"
ESCAPE = "\x1b["


@pytest.fixture
def home(directory: Path) -> Path:
    (directory / "home/.config").mkdir(parents=True)
    return directory / "home"


@pytest.fixture
def environment(home: Path, daemon: Daemon) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "VOXELD_"))}
    kept.pop("NO_COLOR", None)
    return {**kept, "HOME": str(home), "VOXELD_URL": daemon.ipc, "TERM": "xterm"}


@pytest.fixture
def scene(daemon: Daemon) -> Iterator[str]:
    with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client:
        yard = client.scene_create("yard", 0.1)
        yard.integrate(np.load(SCAN), carve=False)
        yield "yard"
        yard.drop()


def run(
    environment: dict[str, str], *words: object, code: int = 0, stdin: bytes = b""
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(CTL), *map(str, words)], env=environment, input=stdin, capture_output=True,
        timeout=120 * SLOW, check=False, cwd=environment["HOME"],
    )  # fmt: skip
    text = subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode()
    )
    assert done.returncode == code, (text.stdout, text.stderr)
    return text


def on_terminal(
    environment: dict[str, str], *words: object, until: str = "", then: Event | None = None
) -> str:
    """What the command writes to a terminal, both streams together. Sets `then` once a line that
    matches `until` is shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [str(CTL), *map(str, words)], env=environment, stdin=theirs, stdout=theirs,
        stderr=theirs, close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while select.select([ours], [], [], 120 * SLOW)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
        if then is not None and re.search(until, shown.decode(errors="replace")):
            then.set()
    process.wait(60)
    os.close(ours)
    return shown.decode()


def test_local_work_that_takes_long_is_shown(
    environment: dict[str, str], directory: Path
) -> None:
    whole = SCAN.read_bytes()
    pipe, out = directory / "scan.npy", directory / "scan.ply"
    os.mkfifo(pipe)
    is_shown = Event()

    def feed_late() -> None:
        with pipe.open("wb") as feed:
            feed.write(whole[:1000])
            feed.flush()
            is_shown.wait(120 * SLOW)
            feed.write(whole[1000:])

    feeder = threading.Thread(target=feed_late)
    feeder.start()
    words = rf"\r\S reading \S*{pipe.name}, \d+ s"
    shown = on_terminal(environment, "convert", pipe, out, until=words, then=is_shown)
    feeder.join()
    assert is_shown.is_set(), shown
    assert "\r\x1b[K" in shown.split("reading")[-1]
    # And writing: nobody reads the pipe at first.
    sink = directory / "sink.ply"
    os.mkfifo(sink)
    taken: list[bytes] = []
    is_shown = Event()

    def take_late() -> None:
        is_shown.wait(120 * SLOW)
        taken.append(sink.read_bytes())

    reader = threading.Thread(target=take_late)
    reader.start()
    words = rf"\r\S writing \S*{sink.name}, \d+ s"
    shown = on_terminal(environment, "convert", SCAN, sink, until=words, then=is_shown)
    reader.join()
    assert is_shown.is_set(), shown
    # Neither where it is quick, nor without a terminal.
    begin = time.monotonic()
    shown = on_terminal(environment, "convert", SCAN, out)
    assert "writing" not in shown or time.monotonic() - begin > 1
    assert taken == [out.read_bytes()]
    is_shown.clear()
    reader = threading.Thread(target=take_late)
    reader.start()
    threading.Timer(1.6, is_shown.set).start()
    assert run(environment, "convert", SCAN, sink).stderr == ""
    reader.join()


def test_files_of_a_drive_are_shown_one_after_the_other(
    environment: dict[str, str], directory: Path
) -> None:
    names = []
    for i in range(4):
        np.save(directory / f"scan-{i}.npy", np.load(SCAN)[i::40, :3])
        names.append(directory / f"scan-{i}.npy")
    poses = directory / "poses.txt"
    poses.write_text("1 0 0 0 0 1 0 0 0 0 1 0\n" * 4)
    commands = [
        ("scene", "integrate", *names, "--scene", "drive", "--size", "0.5", "--poses", poses),
        ("map", "merge", *names, "--map", "drive", "--size", "0.5", "--poses", poses),
        ("odometry", "run", directory, "--name", "drive", "--poses-out", directory / "out.txt"),
    ]
    for words in commands:
        shown = on_terminal(environment, *words)
        for i in range(4):
            assert re.search(rf"\r\[#* *\] {i}/4 \S*scan-{i}\.npy", shown), (words, i, shown)
        assert ESCAPE + "K" in shown.split("3/4")[-1]  # the bar is gone before what is said last
        assert "/4 " not in run(environment, *words).stderr  # and no terminal has none
    # One file has no bar.
    assert "0/1" not in on_terminal(environment, "map", "merge", names[0], "--map", "drive",
                                    "--size", "0.5")  # fmt: skip
    run(environment, "scene", "drop", "drive")
    run(environment, "map", "drop", "drive")
    run(environment, "odometry", "drop", "drive", "--missing-ok")


def test_export_shows_that_it_writes(
    environment: dict[str, str], scene: str, directory: Path
) -> None:
    sink, taken = directory / "yard.npz", []
    os.mkfifo(sink)

    def take_late() -> None:
        time.sleep(1.6)
        taken.append(sink.read_bytes())

    reader = threading.Thread(target=take_late)
    reader.start()
    shown = on_terminal(environment, "scene", "export", scene, sink)
    reader.join()
    assert re.search(rf"\r\S writing \S*{sink.name}, 1 s", shown), shown
    run(environment, "scene", "export", scene, "whole.npz")
    assert taken == [(Path(environment["HOME"]) / "whole.npz").read_bytes()]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--network", "nothing"], 'no network "nothing" is loaded'),
        (["--rule", "label", "--field", "nothing"], 'no field "nothing"'),
        (["--material", "7"], "material"),
        (["--odometry", "nothing", "--estimate"], 'no odometry "nothing"'),
    ],
)
def test_integrate_that_the_server_refuses_leaves_no_scene(
    environment: dict[str, str], options: list[str], says: str
) -> None:
    """Nor does one whose second file is refused as well."""
    words = ("scene", "integrate", SCAN, SCAN, "--scene", "refused", "--size", "0.1", *options)
    refused = run(environment, *words, code=1)
    assert says in refused.stderr, refused.stderr
    listed = json.loads(run(environment, "scene", "list", "--json").stdout)
    assert "refused" not in [s["name"] for s in listed["scenes"]]
    # A scene that was there stays.
    run(environment, "scene", "create", "refused", "--size", "0.1")
    run(environment, *words[:-len(options)], *options, code=1)
    run(environment, "scene", "info", "refused")
    run(environment, "scene", "drop", "refused")


def test_defaults_come_from_a_file_and_lose_to_the_rest(
    environment: dict[str, str], home: Path, daemon: Daemon
) -> None:
    del environment["VOXELD_URL"]
    file = home / ".config/voxeld.json"
    file.write_text(json.dumps({"url": daemon.tcp, "timeout_s": 20, "json": True}))
    assert json.loads(run(environment, "status").stdout)["state"] == "serving"
    file.write_text(json.dumps({"url": "ipc:///nowhere"}))
    assert "no socket at /nowhere" in run(environment, "info", code=1).stderr
    run({**environment, "VOXELD_URL": daemon.ipc}, "info")
    run(environment, "info", "--url", daemon.ipc)
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "voxeld.json").write_text(json.dumps({"url": daemon.ipc}))
    run({**environment, "XDG_CONFIG_HOME": str(elsewhere)}, "info")
    (home / "token").write_text("the-token\n")
    file.write_text(json.dumps({"url": daemon.ipc, "token_file": "~/token"}))
    run(environment, "info")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"timout_s": 3}', 'no key "timout_s". Did you mean "timeout_s"?'),
        ('{"timeout_s": 0}', "timeout_s: must be seconds"),
        ('{"url": 3}', "url: must be a string"),
        ('{"token_file": "/nowhere/token"}', "/nowhere/token"),
        ("[]", "must be an object"),
        ("{", "voxeld.json"),
    ],
)
def test_faulty_defaults_are_named(
    environment: dict[str, str], home: Path, text: str, says: str
) -> None:
    del environment["VOXELD_URL"]
    (home / ".config/voxeld.json").write_text(text)
    assert says in run(environment, "info", code=1).stderr
    run(environment, "--help")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["voxelise", "a.pcd"], 'no command "voxelise". Did you mean "voxelize"?'),
        (["scene", "integrat"], 'no subcommand "integrat". Did you mean "integrate"?'),
        (["map", "exprot"], 'Did you mean "export"?'),
        (["volume", "exract"], 'Did you mean "extract"?'),
        (["net", "laod"], 'Did you mean "load"?'),
        (["voxelize", "a.pcd", "--sise", "1"], "no option --sise. Did you mean --size?"),
        (["voxelize", "a.pcd", "--si=1", "--sise=2"], "no option --sise=2. Did you mean --size?"),
        (["voxelize", "a.pcd", "--size"], "--size needs a value"),
        (["status", "--t", "1"], "--t may be --token-file, --timeout, --timeout-ms"),
        (["status", "-x"], "no option -x"),
    ],
)
def test_misspelt_words_say_what_was_meant(
    environment: dict[str, str], words: list[str], says: str
) -> None:
    assert says in run(environment, *words, code=2).stderr
    error = json.loads(run(environment, *words, "--json", code=2).stderr)
    assert error["code"] == "USAGE"
    assert error["help"].endswith("--help")


def test_errors_are_json_with_json(environment: dict[str, str], home: Path) -> None:
    error = json.loads(run(environment, "scene", "info", "yrd", "--json", code=1).stderr)
    assert error["code"] == "NOT_FOUND"
    assert error["field"] == "name"
    assert 'there is no scene "yrd"' in error["message"]
    assert error["request_id"]
    error = json.loads(run(environment, "voxelize", "no.pcd", "--size", 1, "--json", code=1).stderr)
    assert error["code"] == "NOT_FOUND" and error["what"] == "no.pcd"
    (home / "poses.txt").write_text("1 2 3\n")
    error = json.loads(
        run(environment, "map", "merge", SCAN, "--map", "m", "--size", 1, "--poses", "poses.txt",
            "--json", code=1).stderr
    )  # fmt: skip
    assert error["code"] == "FAILED" and "TUM" in error["message"]


def test_missing_local_files_are_named_as_such_and_leave_no_scene(
    environment: dict[str, str],
) -> None:
    words = ("scene", "integrate", "no.pcd", "--scene", "fresh", "--size", "0.1")
    assert "cannot read the local file no.pcd" in run(environment, *words, code=1).stderr
    listed = json.loads(run(environment, "scene", "list", "--json").stdout)
    assert "fresh" not in [s["name"] for s in listed["scenes"]]


def test_terminals_get_colours_and_tables_and_others_none(
    environment: dict[str, str], scene: str
) -> None:
    plain = run(environment, "status").stdout
    assert ESCAPE not in plain
    head = next(line for line in plain.splitlines() if line.startswith("memory"))
    assert head.split() == ["memory", "count", "used", "limit", "full"]
    row = next(line for line in plain.splitlines() if line.startswith("scenes"))
    assert len(row) == len(head) and row.split()[1] == "1"
    assert "scene_integrate" in plain and "posegraph_solve " not in plain  # which nobody called
    assert ESCAPE in on_terminal(environment, "status")
    assert ESCAPE not in on_terminal({**environment, "NO_COLOR": "1"}, "status")
    assert ESCAPE not in on_terminal({**environment, "TERM": "dumb"}, "status")
    assert ESCAPE + "31m" in on_terminal(environment, "nonsense")


def test_log_and_info_are_readable(environment: dict[str, str], scene: str) -> None:
    log = run(environment, "scene", "log", scene).stdout.splitlines()
    assert log[0].split() == [
        "version", "time", "kind", "added", "removed", "changed", "freed", "by", "client",
    ]  # fmt: skip
    assert re.match(r" *2  20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ  integrated +125,565 ", log[1])
    info = run(environment, "scene", "info", scene).stdout
    assert re.search(r"^box +-74\.2, -38\.2, -1\.1 to 75\.4, 61\.1, 6 m$", info, re.MULTILINE)
    described = json.loads(run(environment, "scene", "info", scene, "--json").stdout)
    assert np.allclose(described["occupied_low_m"], [-74.2, -38.2, -1.1])
    assert np.allclose(described["occupied_high_m"], [75.4, 61.1, 6.0])


def test_answers_are_in_metres_and_names_of_the_palette(environment: dict[str, str]) -> None:
    run(environment, "scene", "create", "street", "--size", "0.5", "--palette",
        "road:808080", "--palette", "wall:ff0000", "--material-bits", "8")  # fmt: skip
    run(environment, "scene", "edit", "street", "--box", "-4,-1,0,-3,1,2", "--fill", "1")
    hit = run(environment, "scene", "query", "street", "ray", "0,0.1,1", "-1,0,0").stdout
    assert "3 m" in hit and "wall" in hit and "-3.25, 0.25, 1.25" in hit
    near = run(environment, "scene", "query", "street", "nearest", "-5,0,1", "--radius", "3").stdout
    assert "wall" in near and "-3.75" in near
    value = run(environment, "scene", "query", "street", "values", "-3.2,0.2,1").stdout
    assert "occupied" in value and "wall" in value
    run(environment, "scene", "drop", "street")


def test_words_may_be_negative_numbers_and_a_dash_is_standard_input(
    environment: dict[str, str], scene: str, home: Path
) -> None:
    first = run(environment, "scene", "query", scene, "ray", "-1,0,1.5", "-1,0,-0.1").stdout
    assert first == run(environment, "scene", "query", scene, "ray", "--", "-1,0,1.5",
                        "-1,0,-0.1").stdout  # fmt: skip
    assert " m" in first
    scan = SCAN.read_bytes()
    text = run(environment, "voxelize", "-", "--format", "npy", "--size", "0.1", stdin=scan).stdout
    assert text.startswith("125,565 voxels from 198,130 points")


@pytest.mark.parametrize("layout", ["kitti", "matrix", "rows", "tum"])
def test_poses_are_of_kitti_tum_and_matrices(
    environment: dict[str, str], home: Path, layout: str
) -> None:
    half = np.sqrt(0.5)
    matrix = np.array([[0, -1, 0, 5], [1, 0, 0, -2], [0, 0, 1, 1], [0, 0, 0, 1]], float)
    texts = {
        "kitti": " ".join(map(str, matrix[:3].ravel())),
        "matrix": " ".join(map(str, matrix.ravel())),
        "rows": "\n".join(" ".join(map(str, row)) for row in matrix),
        "tum": f"1403636579.76 5 -2 1 0 0 {half} {half}",
    }
    comment = "# stamp x y z qx qy qz qw\n" if layout == "tum" else ""
    (home / "poses.txt").write_text(comment + (texts[layout] + "\n") * 2)
    points = np.array([[1, 0, 0], [0, 2, 0]], np.float32) + np.float32(0.25)
    for i in range(2):
        np.save(home / f"{i}.npy", points[i : i + 1])
    name = f"posed-{layout}"
    run(environment, "map", "merge", "0.npy", "1.npy", "--map", name, "--size", "0.5", "--poses",
        "poses.txt")  # fmt: skip
    run(environment, "map", "export", name, "map.npz")
    keys = np.load(home / "map.npz")["keys"]
    moved = points @ matrix[:3, :3].T + matrix[:3, 3]
    assert {tuple(k) for k in keys} == {tuple(k) for k in np.floor(moved / 0.5).astype(int)}
    run(environment, "map", "drop", name)


def test_top_shows_rates_and_slow_requests(environment: dict[str, str], daemon: Daemon) -> None:
    done = threading.Event()

    def load() -> None:
        scan = np.load(SCAN)
        with voxeld.connect(daemon.ipc, timeout=60 * SLOW) as client:
            while not done.is_set():
                client.voxelize(scan, size=0.1)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        text = run(environment, "top", "--interval", max(1, SLOW), "--times", 2).stdout
    finally:
        done.set()
        thread.join()
    assert ESCAPE not in text
    assert text.count("serving for") == 2
    row = next(line for line in text.splitlines() if line.startswith("voxelize"))
    assert float(row.split()[1]) > 0
    assert "slow request" in text and "queue  [" in text
    lines = run(environment, "top", "--times", 2, "--interval", 0.1, "--json").stdout.splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["serving", "serving"]
    assert "--interval 0: seconds" in run(environment, "top", "--interval", 0, code=2).stderr


def test_demo_shows_and_runs_five_commands(environment: dict[str, str], home: Path) -> None:
    text = run(environment, "demo").stdout
    commands = [line for line in text.splitlines() if line.startswith("$ voxelctl ")]
    assert len(commands) == 5
    assert "125,565 voxels from 198,130 points" in text
    assert "No network" not in text and "--network surfaces" in commands[2]
    assert re.search(r"material \d (flat|upright)", text)  # what the ray hit has a label
    assert (home / "demo.png").read_bytes().startswith(b"\x89PNG")
    listed = json.loads(run(environment, "scene", "list", "--json").stdout)
    assert listed["scenes"] == []
    # Its commands are what a user may type.
    run(environment, "scene", "create", "demo", "--size", "0.2")
    assert 'there is a scene "demo" already' in run(environment, "demo", code=1).stderr
    run(environment, "scene", "drop", "demo")


def test_long_calls_show_that_they_wait(environment: dict[str, str]) -> None:
    words = ("self-test", "--duration-ms", 2500)
    shown = on_terminal(environment, *words)
    assert "waiting for the daemon, 1 s of at most" in shown
    assert "\r" + ESCAPE + "K" in shown
    assert "waiting" not in run(environment, *words).stderr


def test_timeouts_say_which_option_raises_them(environment: dict[str, str]) -> None:
    np.save(Path(environment["HOME"]) / "many.npy", np.random.rand(3_000_000, 3).astype("f4"))
    done = run(environment, "voxelize", "many.npy", "--size", 0.01, "--timeout", 0.05, code=1)
    assert "DEADLINE_EXCEEDED" in done.stderr
    assert "--timeout SECONDS waits longer" in done.stderr


def test_server_with_a_short_limit_is_not_asked_for_more(
    environment: dict[str, str], directory: Path
) -> None:
    config = {"limits": {"timeout_ms": 3000, "max_timeout_ms": 4000}}
    with running(directory / "d", config) as daemon:
        run({**environment, "VOXELD_URL": daemon.ipc}, "scene", "list")


def test_convert_adds_a_field(environment: dict[str, str], home: Path) -> None:
    run(environment, "convert", SCAN, "with.pcd", "--add", "intensity=0.25")
    run(environment, "convert", "with.pcd", "with.npy")
    points = np.load(home / "with.npy")
    assert points.shape == (198130, 4) and (points[:, 3] == 0.25).all()
    assert np.array_equal(points[:, :3], np.load(SCAN)[:, :3])
    done = run(environment, "convert", "with.pcd", "x.npy", "--add", "intensity=1", code=1)
    assert 'has a field "intensity" already' in done.stderr
    assert "NAME=VALUE" in run(environment, "convert", SCAN, "x.npy", "--add", "x", code=2).stderr


def test_palette_of_semantickitti_is_known(environment: dict[str, str]) -> None:
    run(environment, "scene", "create", "kitti", "--size", 1, "--material-bits", 8, "--palette",
        "semantickitti")  # fmt: skip
    palette = json.loads(run(environment, "scene", "info", "kitti", "--json").stdout)["palette"]
    config = json.loads((SOURCE / "configs/networks/minkunet42.json").read_text())
    assert [m["name"] for m in palette] == config["outputs"][0]["labels"]
    run(environment, "scene", "drop", "kitti")


def test_ply_has_features_in_the_map_frame(environment: dict[str, str], home: Path) -> None:
    origin = (100.0, -20.0, 3.0)
    for name, shift in (("a", "0,0,0"), ("b", ",".join(map(str, origin)))):
        run(environment, "voxelize", SCAN, "--size", "0.5", "--origin", shift, "--reduce",
            "mean,sum,first", "--out", f"{name}.ply")  # fmt: skip
    a, b = (read_ply(home / f"{name}.ply") for name in "ab")
    assert len(a) == len(b)  # the shift is a multiple of the size
    a, b = (np.sort(t, order=["x", "y", "z"]) for t in (a, b))
    for axis in "xyz":
        assert np.allclose(a[axis], b[axis])
        for kind in ("mean", "first"):
            assert np.allclose(a[f"{kind}_{axis}"], b[f"{kind}_{axis}"], atol=2e-4), (kind, axis)
        assert np.allclose(a[f"sum_{axis}"], b[f"sum_{axis}"], rtol=1e-4, atol=0.05), axis
        assert (np.abs(b[f"mean_{axis}"] - b[axis]) <= 0.2501).all()


def read_ply(path: Path) -> np.ndarray:
    head, data = path.read_bytes().split(b"end_header\n", 1)
    types = {"double": "<f8", "float": "<f4", "uint": "<u4"}
    rows = [line.split() for line in head.decode().splitlines() if line.startswith("property")]
    return np.frombuffer(data, [(name, types[kind]) for _, kind, name in rows])
