#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether two files that programs wrote hold the same numbers, but for a tolerance. Knows nobody who wrote them.

Usage: closeness.py losses|doubles|text A B TOLERANCE

  losses    step,loss,seconds lines as fashion_mnist --log writes them: losses relative to A's; 0: the same digits
  doubles   binary: relative to the largest of A
  text      words that are numbers, relative to A's; other words are the same
"""
import array
import math
import sys


def losses(path):
    with open(path) as file:
        lines = [line.split(",") for line in file.read().splitlines()[1:]]
    return [float(line[1]) for line in lines]


def doubles(path):
    numbers = array.array("d")
    with open(path, "rb") as file:
        numbers.frombytes(file.read())
    return list(numbers)


def words(path):
    with open(path) as file:
        return file.read().split()


def number(word):
    try:
        return float(word)
    except ValueError:
        return None


def number_pairs(ours, theirs):
    for a, b in zip(ours, theirs):
        if number(a) is None or number(b) is None:
            if a != b:
                sys.exit(f"'{b}' is not '{a}'")
        else:
            yield number(a), number(b)


def difference(a, b, scale):
    """Relative to the scale; of what is no number infinite."""
    far = abs(a - b)
    return 0 if a == b else far / scale if scale and math.isfinite(far) else math.inf


def main():
    if len(sys.argv) != 5 or sys.argv[1] not in ("losses", "doubles", "text"):
        sys.exit(__doc__)
    kind, *paths, tolerance = sys.argv[1:]
    ours, theirs = map({"losses": losses, "doubles": doubles, "text": words}[kind], paths)
    if not ours or len(ours) != len(theirs):
        sys.exit(f"{paths[0]} holds {len(ours)}, {paths[1]} {len(theirs)}")
    found = list(number_pairs(ours, theirs) if kind == "text" else zip(ours, theirs))
    whole = max(map(abs, ours)) if kind == "doubles" else 0
    apart = [difference(a, b, whole or abs(a)) for a, b in found]
    worst = max(apart)
    print(f"{len(apart)} numbers, {worst:.1e} apart at most (number {apart.index(worst)}), {float(tolerance):g} allowed")
    sys.exit(worst > float(tolerance))


if __name__ == "__main__":
    main()
