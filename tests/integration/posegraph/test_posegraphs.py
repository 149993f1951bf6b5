# SPDX-License-Identifier: Apache-2.0
"""Pose graphs over the wire: optimized against SciPy, in versions, exactly as wrong as their errors
say, durable; g2o files; loops that are closed and scenes that are made anew."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voxeld
from harness import BIN, SLOW, Daemon, http_call, running, wait_until
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation
from voxeld import Pose, PosegraphEdge, PosegraphNode, PosegraphPrior

Matrix = np.ndarray


def connect(daemon: Daemon, **more: Any) -> voxeld.Client:
    return voxeld.connect(daemon.ipc, timeout=60 * SLOW, **more)


def voxelctl(daemon: Daemon, *words: str) -> str:
    done = subprocess.run(
        [BIN / "voxelctl", "--url", daemon.ipc, *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def integral(v: Matrix) -> Matrix:
    """The integral of exp(s v) over s from 0 to 1, as a series."""
    k = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    term, total = np.eye(3), np.eye(3)
    for n in range(2, 26):
        term = term @ k / n
        total = total + term
    return total


def matrix(x: Matrix) -> Matrix:
    """exp of (translation, rotation vector)."""
    m = np.eye(4)
    m[:3, :3] = Rotation.from_rotvec(x[3:]).as_matrix()
    m[:3, 3] = integral(x[3:]) @ x[:3]
    return m


def logarithm(m: Matrix) -> Matrix:
    v = Rotation.from_matrix(m[:3, :3]).as_rotvec()
    return np.concatenate([np.linalg.solve(integral(v), m[:3, 3]), v])


def of_row(row: Matrix) -> Matrix:
    m = np.eye(4)
    m[:3, :3] = Rotation.from_quat(row[3:]).as_matrix()
    m[:3, 3] = row[:3]
    return m


def ring(n: int, rng: np.random.Generator, noise: float) -> tuple[list[Matrix], list[Any]]:
    """True poses around a circle, and edges with noise to the next one and beyond, closed."""
    truth = []
    for i in range(n):
        a = 2 * np.pi * i / n
        m = np.eye(4)
        m[:3, :3] = Rotation.from_euler("zyx", [a + np.pi / 2, 0.1, 0.05]).as_matrix()
        m[:3, 3] = [5 * np.cos(a), 5 * np.sin(a), 0.3 * np.sin(2 * a)]
        truth.append(m)
    edges = []
    for i in range(n):
        for step in (1, 3):
            j = (i + step) % n
            x = noise * rng.normal(size=6)
            b = rng.normal(size=(6, 6))
            information = b @ b.T + 6 * np.eye(6)
            z = np.linalg.inv(truth[i]) @ truth[j] @ matrix(x)
            edges.append((i, j, z, information))
    return truth, edges


def test_optimum_is_that_of_scipy(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    truth, edges = ring(8, rng, 0.1)

    def residuals(x: Matrix) -> Matrix:
        poses = [truth[0], *(truth[i] @ matrix(x[6 * i - 6 : 6 * i]) for i in range(1, 8))]
        rows = []
        for i, j, z, information in edges:
            e = logarithm(np.linalg.inv(z) @ np.linalg.inv(poses[i]) @ poses[j])
            rows.append(np.linalg.cholesky(information).T @ e)
        return np.concatenate(rows)

    best = least_squares(residuals, np.zeros(42), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    with running(tmp_path) as daemon, connect(daemon) as client:
        graph = client.posegraph_create("ring")
        graph.add(
            [PosegraphNode(10 * i, truth[i]) for i in range(8)],
            [PosegraphEdge(10 * i, 10 * j, z, w) for i, j, z, w in edges],
        )
        solution = graph.solve(relative_tolerance=1e-14, covariance_of=[0, 30])
        assert solution.converged and solution.n_nodes == 8
        assert solution.cost == pytest.approx(2 * best.cost, rel=1e-9)
        for i in range(1, 8):
            found = of_row(solution.poses[i])
            expected = truth[i] @ matrix(best.x[6 * i - 6 : 6 * i])
            assert np.abs(found - expected).max() < 1e-6

        # The covariance is the inverse of J^T J, in the pose's own frame at the optimum.
        def moved(y: Matrix) -> Matrix:
            x = best.x.copy()
            poses = [truth[0], *(truth[i] @ matrix(x[6 * i - 6 : 6 * i]) for i in range(1, 8))]
            poses = [poses[0], *(p @ matrix(y[6 * k : 6 * k + 6]) for k, p in enumerate(poses[1:]))]
            return np.concatenate(
                [
                    np.linalg.cholesky(w).T
                    @ logarithm(np.linalg.inv(z) @ np.linalg.inv(poses[i]) @ poses[j])
                    for i, j, z, w in edges
                ]
            )

        step = 1e-5
        jacobian = np.stack(
            [(moved(step * e) - moved(-step * e)) / (2 * step) for e in np.eye(42)], axis=1
        )
        covariance = np.linalg.inv(jacobian.T @ jacobian)[12:18, 12:18]
        assert np.abs(solution.covariance[0]).max() == 0  # it is held
        assert np.allclose(solution.covariance[1].reshape(6, 6), covariance, rtol=1e-4, atol=1e-9)
        assert graph.info().version == 1  # nothing has changed


def test_versions_of_poses_stay_readable(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    truth, edges = ring(12, rng, 0.02)
    with running(tmp_path) as daemon, connect(daemon) as client:
        graph = client.posegraph_create("drive")
        # Only the first pose is given; the others follow from the edges, drifting.
        graph.add(
            [PosegraphNode(0, truth[0]), *(PosegraphNode(i) for i in range(1, 12))],
            [PosegraphEdge(i, j, z, w) for i, j, z, w in edges if j == i + 1],
        )
        before = graph.read()
        graph.add(edges=[PosegraphEdge(i, j, z, w) for i, j, z, w in edges if j != i + 1])
        made = graph.optimize()
        assert made.version == 2 and made.converged and made.cost < made.initial_cost
        assert made.max_moved_m > 0
        assert np.array_equal(graph.read(version=1).poses, before.poses)
        after = graph.read(edges=True)
        assert after.version == 2 and not np.array_equal(after.poses, before.poses)
        assert after.edge_residuals[:, 0].sum() == pytest.approx(made.cost, rel=1e-9)
        graph.add([PosegraphNode(99)], [PosegraphEdge(11, 99, Pose((1, 0, 0)))])
        assert graph.read().n_nodes == 13 and graph.read(version=1).n_nodes == 12
        assert [v.version for v in graph.info().versions] == [1, 2]
        with pytest.raises(voxeld.NotFound, match="version"):
            graph.read(version=7)
        for _ in range(16):
            graph.optimize()
        assert [v.version for v in graph.info().versions] == list(range(3, 19))


def test_wrong_loops_are_rejected_by_robust_costs(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    truth, edges = ring(40, rng, 0.005)
    strong = np.eye(6) * 1e4
    with running(tmp_path) as daemon, connect(daemon) as client:
        for robust in ("squares", "huber", "cauchy", "dcs"):
            graph = client.posegraph_create(robust)
            graph.add(
                [PosegraphNode(i, truth[i]) for i in range(40)],
                [PosegraphEdge(i, j, z, strong) for i, j, z, _ in edges],
            )
            wrong = [
                PosegraphEdge(i, i + 15, Pose((3, i, -2)), strong, robust, 3.0)
                for i in range(0, 20, 4)
            ]
            graph.add(edges=wrong)
            solution = graph.optimize()
            poses = graph.read().poses
            error = np.abs(poses[:, :3] - np.array([m[:3, 3] for m in truth])).max()
            if robust == "squares":
                assert error > 0.5 and solution.n_outliers == 0
            else:
                assert solution.n_outliers == len(wrong)
            if robust in ("cauchy", "dcs"):
                assert error < 0.05


def test_bad_input_names_what_is_wrong_and_changes_nothing(tmp_path: Path) -> None:
    edge = PosegraphEdge(0, 1, Pose((1, 0, 0)))
    with running(tmp_path) as daemon, connect(daemon) as client:
        graph = client.posegraph_create("g")
        graph.add([PosegraphNode(0), PosegraphNode(1)], [edge])
        before = graph.info()
        singular = np.diag([1.0, 1, 1, 1, 1, 0])
        skew = np.eye(6)
        skew[0, 1] = 0.5
        cases: list[tuple[type[voxeld.Error], str, dict[str, Any]]] = [
            (voxeld.AlreadyExists, "1 is a node", {"nodes": [PosegraphNode(1, Pose())]}),
            (voxeld.AlreadyExists, "7 is", {"nodes": [PosegraphNode(7, Pose())] * 2}),
            (voxeld.NotFound, "no node 5", {"edges": [PosegraphEdge(0, 5, Pose())]}),
            (voxeld.InvalidArgument, "itself", {"edges": [PosegraphEdge(1, 1, Pose())]}),
            (
                voxeld.InvalidArgument,
                "node 0 to node 1 is singular",
                {"edges": [PosegraphEdge(0, 1, Pose(), singular)]},
            ),
            (
                voxeld.InvalidArgument,
                "not symmetric",
                {"edges": [PosegraphEdge(0, 1, Pose(), skew)]},
            ),
            (
                voxeld.InvalidArgument,
                "not finite",
                {"edges": [PosegraphEdge(0, 1, Pose(), np.full(6, np.nan))]},
            ),
            (voxeld.InvalidArgument, "T_map_node", {"nodes": [PosegraphNode(3)]}),
            (
                voxeld.InvalidArgument,
                "finite",
                {"nodes": [PosegraphNode(3, Pose((np.nan, 0, 0)))]},
            ),
            (
                voxeld.InvalidArgument,
                "norm",
                {"nodes": [PosegraphNode(3, Pose((0, 0, 0), (2.0, 0, 0, 0)))]},
            ),
            (
                voxeld.InvalidArgument,
                "width",
                {"edges": [PosegraphEdge(0, 1, Pose(), None, "huber", -1.0)]},
            ),
            (
                voxeld.InvalidArgument,
                "semidefinite",
                {"priors": [PosegraphPrior(0, Pose(), -np.ones(6))]},
            ),
        ]
        for kind, match, more in cases:
            with pytest.raises(kind, match=match):
                graph.add(**more)
        assert graph.info() == before
        # What hangs together with nothing that is known is named.
        graph.add([PosegraphNode(8, Pose()), PosegraphNode(9, Pose())])
        with pytest.raises(voxeld.FailedPrecondition, match="node 8"):
            graph.optimize()
        with pytest.raises(voxeld.NotFound, match="77"):
            graph.solve(covariance_of=[77])
        assert graph.info().version == 1
        empty = client.posegraph_create("empty")
        with pytest.raises(voxeld.FailedPrecondition, match="no nodes"):
            empty.optimize()
        with pytest.raises(voxeld.NotFound):
            client.posegraph("none")
        with pytest.raises(voxeld.InvalidArgument, match="max_iterations"):
            graph.optimize(max_iterations=1001)
        # A prior of a position alone holds a graph, too.
        near = client.posegraph_create("near")
        near.add(
            [PosegraphNode(i, Pose((i, 0, 0))) for i in range(3)],
            [PosegraphEdge(i, i + 1, Pose((1, 0.1, 0))) for i in range(2)],
            [PosegraphPrior(1, Pose((5, 5, 0)), [1, 1, 1, 0, 0, 0])],
        )
        near.optimize()
        assert np.allclose(near.read().poses[1][:3], [5, 5, 0], atol=1e-3)


def sphere(n: int) -> tuple[list[PosegraphNode], list[PosegraphEdge]]:
    """Rings of poses around a sphere, with noisy edges to the next one and the one above."""
    rng = np.random.default_rng(4)
    truth = []
    for i in range(n * n):
        r = Rotation.from_euler("ZY", [2 * np.pi * i / n, np.pi * (i / n / n - 0.5)])
        m = np.eye(4)
        m[:3, :3] = r.as_matrix()
        m[:3, 3] = r.apply([50, 0, 0])
        truth.append(m)
    edges = []
    for i in range(n * n):
        for j in (i + 1, i + n):
            if j < n * n:
                x = rng.normal(size=6) * [0.1, 0.1, 0.1, 0.05, 0.05, 0.05]
                z = np.linalg.inv(truth[i]) @ truth[j]
                z[:3, 3] += z[:3, :3] @ x[:3]
                z[:3, :3] = z[:3, :3] @ Rotation.from_rotvec(x[3:]).as_matrix()
                edges.append(PosegraphEdge(i, j, z, [100] * 3 + [400] * 3))
    nodes = [PosegraphNode(0, truth[0]), *(PosegraphNode(i) for i in range(1, n * n))]
    return nodes, edges


def test_long_optimization_is_followed_and_ends_at_its_deadline(tmp_path: Path) -> None:
    nodes, edges = sphere(60)
    with running(tmp_path) as daemon, connect(daemon) as client, connect(daemon) as other:
        graph = client.posegraph_create("sphere")
        graph.add(nodes, edges)
        steps = []

        def optimize() -> None:
            steps.append(graph.optimize(start="keep", relative_tolerance=1e-12))

        thread = threading.Thread(target=optimize)
        thread.start()
        seen = []
        longest = 0.0
        while thread.is_alive():
            begin = time.monotonic()
            seen += other.posegraph("sphere").info().running
            longest = max(longest, time.monotonic() - begin)
        thread.join()
        assert seen and max(r.n_iterations for r in seen) > 1
        assert longest < 5 * SLOW  # polling came in between the stages
        assert steps[0].version == 2 and not graph.info().running
        again = client.posegraph_create("again")
        again.add(nodes, edges)
        with pytest.raises(voxeld.DeadlineExceeded):
            again.optimize(start="keep", relative_tolerance=1e-12, timeout=0.05)
        wait_until(lambda: not again.info().running, 20, "it is given up")
        assert again.info().version == 1


def test_search_that_was_answered_is_not_among_those_that_run(tmp_path: Path) -> None:
    """Whatever lane the list is made on: the answer comes when the search is off the list."""
    nodes, edges = sphere(8)
    with running(tmp_path) as daemon, connect(daemon) as client:
        graph = client.posegraph_create("sphere")
        graph.add(nodes, edges)
        for _ in range(300):
            graph.solve(max_iterations=1)
            assert not graph.info().running
        for _ in range(50):
            graph.optimize(start="keep", max_iterations=1)
            assert not client.posegraphs()[0].running
        n_bytes = graph.info().n_bytes
    # One that fails once it is among them: the limit leaves the solver nothing.
    config = {"limits": {"posegraph_bytes": n_bytes}}
    with running(tmp_path, config) as daemon, connect(daemon) as client:
        graph = client.posegraph_create("sphere")
        graph.add(nodes, edges)
        for _ in range(100):
            with pytest.raises(voxeld.ResourceExhausted):
                graph.solve()
            assert not graph.info().running


def test_graphs_outlive_a_kill(tmp_path: Path) -> None:
    nodes, edges = sphere(8)
    config = {"data_dir": str(tmp_path / "data")}
    cloud = np.random.default_rng(5).uniform(-5, 5, (500, 3)).astype(np.float32)
    daemon = Daemon(tmp_path, config)
    with connect(daemon) as client:
        graph = client.posegraph_create("drive", durable="always", journal_max_bytes=1 << 14)
        client.posegraph_create("gone")
        graph.add(nodes, edges)
        for i in range(0, 64, 8):
            graph.add_keyframe(i, cloud + i, descriptor=[i, 1, 2])
        graph.optimize()
        graph.add(priors=[PosegraphPrior(3, Pose((1, 2, 3)), [1] * 6, "huber", 2.0)])
        info = graph.info()
        states = [graph.read(version=v, edges=True) for v in (1, 2)]
    daemon.process.kill()
    daemon.wait()
    with running(tmp_path, config) as daemon, connect(daemon) as client:
        assert [g.name for g in client.posegraphs()] == ["drive"]
        graph = client.posegraph("drive")
        again = graph.info()
        assert (again.generation, again.n_nodes, again.n_keyframes, again.version) == (
            info.generation,
            64,
            8,
            2,
        )
        for v, before in zip((1, 2), states, strict=True):
            after = graph.read(version=v, edges=True)
            for name in ("ids", "poses", "flags", "edge_ids", "edge_poses", "edge_information",
                         "edge_residuals", "prior_ids", "prior_poses"):  # fmt: skip
                assert np.array_equal(getattr(after, name), getattr(before, name)), name
        assert np.array_equal(graph.read(keyframe=True, keyframe_id=16).points, cloud + 16)
        client.posegraph_drop("drive")
    with running(tmp_path, config) as daemon, connect(daemon) as client:
        assert not client.posegraphs()


def test_g2o_files_and_http(tmp_path: Path) -> None:
    nodes, edges = sphere(6)
    with running(tmp_path) as daemon, connect(daemon) as client:
        graph = client.posegraph_create("made")
        graph.add(nodes, edges)
        path = tmp_path / "made.g2o"
        assert "36 nodes" in voxelctl(daemon, "posegraph", "save", "made", str(path))
        assert "65 edges" in voxelctl(daemon, "posegraph", "load", "copy", str(path))
        copied = client.posegraph("copy").read(edges=True)
        content = graph.read(edges=True)
        assert np.allclose(copied.poses, content.poses, atol=1e-12)
        assert np.allclose(copied.edge_information, content.edge_information)
        done = json.loads(voxelctl(daemon, "posegraph", "optimize", "copy", "--json"))
        assert done["version"] == 2 and done["converged"] is True
        assert done["cost"] == pytest.approx(graph.optimize().cost, rel=1e-6)
        bad = tmp_path / "bad.g2o"
        bad.write_text("VERTEX_SE2 1 0 0 0\n")
        with pytest.raises(AssertionError, match="line 1"):
            voxelctl(daemon, "posegraph", "load", "copy", str(bad))
        reply = http_call(daemon, "GET", "/v1/posegraphs/copy")
        assert reply.status == 200 and int(reply.json()["posegraph"]["nNodes"]) == 36
        assert b"voxeld_posegraphs 2" in http_call(daemon, "GET", "/metrics").body
