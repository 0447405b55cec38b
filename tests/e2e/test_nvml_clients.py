"""Unmodified NVML clients look at simulated GPUs.

Each client runs as a program of its own, with nothing but LD_LIBRARY_PATH and BERTH_SIM_DIR to tell
it apart from one on a machine with a real driver.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BERTH_BUILD", REPO / "build"))
SIMGPU = BUILD / "bin" / "berth-simgpu"
LIBRARIES = BUILD / "lib" / "berth-sim"
GIB = 1024**3


def needs(module):
    missing = importlib.util.find_spec(module) is None
    return pytest.mark.skipif(missing, reason=f"{module} is not installed")


class Gpus:
    """Three simulated cards and the processes on them."""

    def __init__(self, directory):
        self.env = dict(os.environ, BERTH_SIM_DIR=str(directory), LD_LIBRARY_PATH=str(LIBRARIES))
        self.holders = []
        self.simgpu("init", directory, "2x24GiB,1x80GiB")

    def simgpu(self, *words):
        subprocess.run([SIMGPU, *map(str, words)], env=self.env, check=True, timeout=60)

    def hold(self, *words):
        holder = subprocess.Popen(
            [SIMGPU, "hold", *map(str, words)], env=self.env, stdout=subprocess.PIPE, text=True
        )
        self.holders.append(holder)
        assert holder.stdout.readline().startswith("holding")
        return holder.pid

    def run(self, *words):
        done = subprocess.run(
            [sys.executable, *words], env=self.env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def close(self):
        for holder in self.holders:
            holder.kill()
            holder.wait()
            holder.stdout.close()


@pytest.fixture
def gpus(tmp_path):
    cards = Gpus(tmp_path / "gpus")
    yield cards
    cards.close()


PYNVML_LOOK = """
import json, pynvml as n
n.nvmlInit()
cards = []
for i in range(n.nvmlDeviceGetCount()):
    try:
        h = n.nvmlDeviceGetHandleByIndex(i)
    except n.NVMLError as error:
        cards.append({"error": error.value})
        continue
    m = n.nvmlDeviceGetMemoryInfo(h)
    try:
        sm = {s.pid: s.smUtil for s in n.nvmlDeviceGetProcessUtilization(h, 0)}
    except n.NVMLError_NotFound:
        sm = {}
    text = lambda s: s.decode() if isinstance(s, bytes) else s
    cards.append({
        "uuid": text(n.nvmlDeviceGetUUID(h)), "bus": text(n.nvmlDeviceGetPciInfo(h).busId),
        "total": m.total, "used": m.used, "free": m.free,
        "total_v2": n.nvmlDeviceGetMemoryInfo(h, version=n.nvmlMemory_v2).total,
        "util": n.nvmlDeviceGetUtilizationRates(h).gpu,
        "temperature": n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU),
        "processes": {p.pid: p.usedGpuMemory for p in n.nvmlDeviceGetComputeRunningProcesses(h)},
        "graphics": [p.pid for p in n.nvmlDeviceGetGraphicsRunningProcesses(h)],
        "sm": sm,
    })
print(json.dumps({"driver": str(n.nvmlSystemGetDriverVersion()), "cards": cards}))
n.nvmlShutdown()
"""


@needs("pynvml")
def test_nvidia_ml_py_sees_cards_memory_and_processes(gpus):
    busy = gpus.hold(0, "--memory", "18GiB", "--util", 90)
    second = gpus.hold(0, "--memory", "2GiB")
    desktop = gpus.hold(1, "--memory", "1GiB", "--type", "G")
    seen = json.loads(gpus.run("-c", PYNVML_LOOK))
    assert "550.54.15" in seen["driver"]
    first, other, large = seen["cards"]
    assert first["uuid"].startswith("GPU-") and first["bus"] == "00000000:01:00.0"
    assert (first["total"], first["used"], first["free"]) == (24 * GIB, 20 * GIB, 4 * GIB)
    assert first["total_v2"] == 24 * GIB and large["total"] == 80 * GIB
    assert first["util"] == 90 and first["sm"] == {str(busy): 90}
    assert first["processes"] == {str(busy): 18 * GIB, str(second): 2 * GIB}
    assert other["processes"] == {} and other["graphics"] == [desktop]


@needs("pynvml")
def test_nvidia_ml_py_sees_changes_and_trouble(gpus):
    gpus.simgpu("set", 0, "temperature", 71)
    gpus.simgpu("set", 1, "lost", "yes")
    gpus.simgpu("set", 2, "process_memory", "unknown")
    pid = gpus.hold(2, "--memory", "1GiB")
    first, lost, unknown = json.loads(gpus.run("-c", PYNVML_LOOK))["cards"]
    assert first["temperature"] == 71
    assert lost == {"error": 15}
    assert unknown["processes"] == {str(pid): None}
    gpus.close()
    assert json.loads(gpus.run("-c", PYNVML_LOOK))["cards"][2]["processes"] == {}


@needs("gpustat")
def test_gpustat_sees_the_same(gpus):
    pid = gpus.hold(0, "--memory", "18GiB", "--util", 90)
    cards = json.loads(gpus.run("-m", "gpustat", "--json"))["gpus"]
    assert [card["memory.total"] for card in cards] == [24576, 24576, 81920]
    assert cards[0]["memory.used"] == 18432 and cards[0]["utilization.gpu"] == 90
    [process] = cards[0]["processes"]
    assert process["pid"] == pid and process["gpu_memory_usage"] == 18432
    assert "berth-simgpu" in process["command"]
    assert cards[1]["processes"] == []


@needs("nvitop")
def test_nvitop_sees_the_same(gpus):
    pid = gpus.hold(0, "--memory", "18GiB", "--util", 90)
    second = gpus.hold(0, "--memory", "2GiB")
    table = gpus.run("-m", "nvitop", "--once", "--ascii")
    assert "550.54.15" in table
    assert "20.00GiB / 24.00GiB" in table and "90%" in table
    assert str(pid) in table and "18432MiB" in table
    assert str(second) in table and "2048MiB" in table
