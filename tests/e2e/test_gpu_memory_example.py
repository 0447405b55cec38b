"""examples/test_gpu_memory.py, with a driver of two cards of 128 MiB that is compiled for the test."""

import shutil
import subprocess
import sys

import pytest

from berthlib import PATIENCE, REPO

PROGRAM = REPO / "examples" / "test_gpu_memory.py"

DRIVER = r"""
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#define CARDS 2
static size_t used[CARDS];
static int current;
int cuInit(unsigned flags) { return getenv("NO_CARDS") ? 100 : (int)flags; }
int cuGetErrorString(int error, const char** text) { *text = error == 100 ? "no device" : "bad"; return 0; }
int cuDeviceGetCount(int* count) { *count = CARDS; return 0; }
int cuDeviceGet(int* device, int index) { *device = index; return index < CARDS ? 0 : 101; }
int cuDeviceGetName(char* name, int size, int device) { (void)device; strncpy(name, "Card", size); return 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) { *context = (void*)(size_t)(device + 1); return 0; }
int cuCtxSetCurrent(void* context) { current = (int)(size_t)context - 1; return 0; }
int cuCtxSynchronize(void) { return 0; }
int cuMemGetInfo_v2(size_t* left, size_t* total) { *total = 1 << 27; *left = *total - used[current]; return 0; }
int cuMemAlloc_v2(unsigned long long* at, size_t size) {
  if (used[current] + size > 1 << 27) return 2;
  used[current] += size;
  *at = (unsigned long long)malloc(size);
  return 0;
}
int cuMemsetD8_v2(unsigned long long at, unsigned char fill, size_t size) { memset((void*)at, fill, size); return 0; }
int cuMemcpyDtoH_v2(void* to, unsigned long long at, size_t size) {
  if (getenv("BROKEN")) *(char*)at ^= 1;
  memcpy(to, (void*)at, size);
  return 0;
}
"""

# As much of PyTorch as the program uses, over lists.
TORCH = """
uint8 = None
class Full:
    def __init__(self, size, fill): self.size, self.fill = size, fill
    def __eq__(self, other): return Full(self.size, self.fill == other)
    def all(self): return self.fill
def full(shape, fill, dtype, device):
    if cuda.left < shape[0]: raise cuda.OutOfMemoryError("CUDA out of memory.")
    cuda.left -= shape[0]
    return Full(shape[0], fill)
class cuda:
    left = 2 ** 30
    class OutOfMemoryError(RuntimeError): pass
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 1)
    get_device_name = staticmethod(lambda index: "Card of PyTorch")
    mem_get_info = staticmethod(lambda index: (cuda.left, 2 ** 30))
    synchronize = staticmethod(lambda index: None)
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to make a driver")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "cuda.c").write_text(DRIVER)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "cuda.c"], check=True)
    return folder


def run(*words, **env):
    # -S: no PyTorch of this machine's.
    return subprocess.run([sys.executable, "-S", PROGRAM, "--time", "0", *words], env=env, text=True,
                          capture_output=True, timeout=PATIENCE, check=False)


def test_it_takes_memory_of_the_driver_and_finds_it_whole(driver):
    done = run("--gpus", "2", "--memory", "0.08", LD_LIBRARY_PATH=str(driver))
    assert done.returncode == 0, done
    assert "GPU 0 Card: 0.1 of 0.1 GiB free" in done.stdout and "GPU 1: took 0.08 GiB" in done.stdout
    assert done.stdout.endswith("ok\n")


def test_it_tells_what_cannot_be_had_and_what_is_broken(driver):
    done = run("--memory", "0.2", LD_LIBRARY_PATH=str(driver))
    assert done.returncode == 1 and "GPU 0: 0.2 GiB cannot be had: CUDA out of memory" in done.stderr
    done = run("--memory", "0.07", LD_LIBRARY_PATH=str(driver), BROKEN="1")
    assert done.returncode == 1 and "does not hold what was written" in done.stderr


def test_it_tells_what_is_missing(driver, tmp_path):
    for env, why in (({"LD_LIBRARY_PATH": str(driver), "NO_CARDS": "1"}, "cuInit: no device"),
                     ({"LD_LIBRARY_PATH": str(driver)}, "3 GPUs were asked for, and there are 2")):
        done = run("--gpus", "3", **env)
        assert done.returncode == 3 and why in done.stderr, done


def test_it_goes_through_pytorch_where_that_is_there(tmp_path):
    (tmp_path / "torch.py").write_text(TORCH)
    done = run("--memory", "0.5", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0 and "Card of PyTorch" in done.stdout, done
    done = run("--memory", "2", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1 and "2 GiB cannot be had: CUDA out of memory." in done.stderr
