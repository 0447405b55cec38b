#!/usr/bin/env python3
"""Takes memory on real GPUs, checks it, and holds it for a while.

    python3 test_gpu_memory.py --gpus 2 --memory 4 --time 30
    berth add --gpus 2 --gpu-memory 5GiB -- python3 test_gpu_memory.py --gpus 2 --memory 4

Says what each card has and how much of it was taken, writes a pattern into it and reads it back.
It goes through PyTorch if that is there, otherwise to the driver itself. Ends with 0 if all of it
could be had and was intact, 1 if not, 3 where it cannot be tried because there is no driver or no
GPU. For simulated GPUs use berth-simgpu train.
"""

import argparse
import ctypes
import os
import sys
import time

GIB = 1024**3
CHUNK = GIB // 16
CANNOT_TRY = 3


class CannotTry(Exception):
    """There is nothing to try it on."""


class NoMemory(Exception):
    """A card has not as much as was asked for."""


def pattern(number):
    """The byte that fills a chunk: it tells chunks apart."""
    return number % 251


class TorchCards:
    """GPUs as PyTorch sees them."""

    def __init__(self):
        import torch  # whoever has none catches this

        self.torch = torch
        if not torch.cuda.is_available():
            raise CannotTry("PyTorch sees no GPU")

    def count(self):
        return self.torch.cuda.device_count()

    def name(self, index):
        return self.torch.cuda.get_device_name(index)

    def memory(self, index):
        """(free, total) in bytes."""
        return self.torch.cuda.mem_get_info(index)

    def take(self, index, size, fill):
        try:
            chunk = self.torch.full((size,), fill, dtype=self.torch.uint8, device=f"cuda:{index}")
            self.torch.cuda.synchronize(index)
        except self.torch.cuda.OutOfMemoryError as error:
            raise NoMemory(error) from error
        return chunk

    def holds(self, _index, chunk, _size, fill):
        return bool((chunk == fill).all())


class DriverCards:
    """GPUs through the driver's library."""

    OUT_OF_MEMORY = 2

    def __init__(self):
        try:
            self.cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CannotTry("there is neither PyTorch for this Python nor a driver") from error
        try:
            self.call("cuInit", ctypes.c_uint(0))
        except RuntimeError as error:
            raise CannotTry(str(error)) from error

    def call(self, function, *arguments):
        result = getattr(self.cuda, function)(*arguments)
        if result == self.OUT_OF_MEMORY:
            raise NoMemory("CUDA out of memory")
        if result != 0:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(result, ctypes.byref(text))
            raise RuntimeError(f"{function}: {(text.value or b'error %d' % result).decode()}")

    def device(self, index):
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
        return device

    def enter(self, index):
        """What follows is meant for this card."""
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device(index))
        self.call("cuCtxSetCurrent", context)

    def count(self):
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        return count.value

    def name(self, index):
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, ctypes.c_int(len(name)), self.device(index))
        return name.value.decode(errors="replace")

    def memory(self, index):
        self.enter(index)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def take(self, index, size, fill):
        self.enter(index)
        chunk = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(chunk), ctypes.c_size_t(size))
        self.call("cuMemsetD8_v2", chunk, ctypes.c_ubyte(fill), ctypes.c_size_t(size))
        self.call("cuCtxSynchronize")
        return chunk

    def holds(self, index, chunk, size, fill):
        self.enter(index)
        copy = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", copy, chunk, ctypes.c_size_t(size))
        return copy.raw.count(fill) == size


def read_options():
    parser = argparse.ArgumentParser(description="Takes memory on GPUs, checks it and holds it.")
    parser.add_argument("--gpus", type=int, default=1, help="how many of the visible ones (1)")
    parser.add_argument("--memory", type=float, default=1.0, help="GiB on each (1)")
    parser.add_argument("--time", type=float, default=10.0, help="seconds to hold it (10)")
    options = parser.parse_args()
    if options.gpus < 1 or options.memory <= 0 or options.time < 0:
        parser.error("--gpus and --memory must be more than 0, --time not less")
    return options


def find_cards(wanted):
    try:
        cards = TorchCards()
    except ImportError:
        cards = DriverCards()
    if cards.count() < wanted:
        raise CannotTry(f"{wanted} GPUs were asked for, and there are {cards.count()}")
    return cards


def take_all(cards, options):
    """[(card, chunk, its size, what is in it)]."""
    held = []
    for index in range(options.gpus):
        free, total = cards.memory(index)
        print(f"GPU {index} {cards.name(index)}: {free / GIB:.1f} of {total / GIB:.1f} GiB free", flush=True)
        whole = int(options.memory * GIB)
        try:
            for number, begin in enumerate(range(0, whole, CHUNK)):
                size = min(CHUNK, whole - begin)
                held.append((index, cards.take(index, size, pattern(number)), size, pattern(number)))
        except NoMemory as error:
            raise NoMemory(f"GPU {index}: {options.memory:g} GiB cannot be had: {error}") from error
        print(f"GPU {index}: took {options.memory:g} GiB", flush=True)
    return held


def main():
    options = read_options()
    print(f"CUDA_VISIBLE_DEVICES={os.environ.get('CUDA_VISIBLE_DEVICES', 'not set')}", flush=True)
    try:
        cards = find_cards(options.gpus)
        held = take_all(cards, options)
    except CannotTry as error:
        print(f"cannot test GPU memory: {error}", file=sys.stderr)
        return CANNOT_TRY
    except NoMemory as error:
        print(error, file=sys.stderr)
        return 1
    time.sleep(options.time)
    broken = {index for index, chunk, size, fill in held if not cards.holds(index, chunk, size, fill)}
    for index in sorted(broken):
        print(f"GPU {index}: the memory does not hold what was written into it", file=sys.stderr)
    print("failed" if broken else "ok")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
