# SPDX-License-Identifier: Apache-2.0
"""The programs in PyTorch share this: they are served to tests/bench/run like those in C (common/bench.h)."""
import sys
import time


def timed(unit, n):
    """When n units began and ended."""
    start = time.monotonic()
    for _ in range(n):
        unit()
    return start, time.monotonic()


def serve(run):
    """Answers each "run N" with the seconds of run(N), which says when it began and ended."""
    for line in sys.stdin:
        word, n = line.split()
        if word != "run":
            sys.exit(f"what is '{line.strip()}'?")
        start, end = run(int(n))
        print(f"{end - start:.9f}", flush=True)
