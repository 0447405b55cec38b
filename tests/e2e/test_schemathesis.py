"""What docs/openapi.yaml says of the API is so: schemathesis makes requests of it, good and bad ones, and looks
whether the answers are as described. What it leaves out, and why, stands in schemathesis.toml."""

import json
import os
import pathlib
import subprocess

import pytest

import tcp
from berthlib import REPO, eventually, job

HERE = pathlib.Path(__file__).parent
PROGRAM = REPO / "build" / "schemathesis" / "bin" / "st"
EXAMPLES = 5  # of each operation, beside those that cover every keyword of its schemas
LONG = 100

pytestmark = pytest.mark.skipif(not (PROGRAM.parents[1] / "complete").exists(), reason="schemathesis is not installed")


def try_all(port, token, tmp_path, *options):
    """Everything with all checks, the same every time; the long run tries more, and something else each time."""
    much = ["--max-examples", str(LONG)] if os.environ.get("BERTH_TEST_LONG") else [
        "--max-examples", str(EXAMPLES), "--seed", "1"]
    ran = subprocess.run(
        [PROGRAM, "--config-file", HERE / "schemathesis.toml", "run", REPO / "docs" / "openapi.yaml",
         "--url", f"http://127.0.0.1:{port}", "--header", f"Authorization: Bearer {token}",
         "--phases", "examples,coverage,fuzzing", "--no-color", *much, *options],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    assert ran.returncode == 0, ran.stdout[-20000:]
    return ran.stdout


def test_the_api_is_as_described(gpu_berth, tmp_path):
    berth = gpu_berth
    # A port that berth.yaml asks for cannot be closed, and the token has no number that is guessed early: the run
    # may neither shut the door nor revoke its own key.
    berth.stop()
    (berth.dir / "access.json").write_text(json.dumps({"version": 1, "last_id": 1 << 40, "keys": []}))
    (berth.dir / "access.json").chmod(0o600)
    (berth.dir / "berth.yaml").write_text(f"listen: on\ncommand_dir: {tmp_path}\n")
    berth.start()
    port = eventually(lambda: berth.api("GET", "/api/listen")["port"], "it listens")
    token = tcp.make_token(berth)
    berth.wait(berth.submit([job("echo hello", gpus=1, name="a"), job("exit 3", name="b")], batch={"name": "sweep"}))
    # What is submitted below are commands made up at random: none of them is to run.
    try_all(port, token, tmp_path, "--include-operation-id", "resume")
    berth.api("POST", "/api/jobs/pause", {"instance": True})
    try_all(port, token, tmp_path, "--exclude-operation-id", "resume")
    assert berth.status()["paused"], "something was started"
