#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Whether tests/*/test_nulls*.c call every function of the public headers with NULL for each of its pointers.
# Functions that are defined in a header are for kernels, which are given their pointers, and are left out.
# Usage: nulls.py COMPILER SOURCE... -- FLAG...
import re
import subprocess
import sys


def preprocessed(compiler, source, flags):
    return subprocess.run([compiler, "-E", *flags, source], check=True, capture_output=True, text=True).stdout


def parts_by_file(text):
    """The text, as (file, lines of it) in the order of the preprocessor."""
    name, lines = "", []
    for line in text.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            yield name, lines
            name, lines = marker.group(1), []
        else:
            lines.append(line)
    yield name, lines


def text_of(text, wanted):
    return "\n".join("\n".join(lines) for name, lines in parts_by_file(text) if wanted(name))


def split_arguments(text):
    """The arguments of a call, from behind its opening parenthesis on."""
    depth, arguments = 0, [""]
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if depth < 0:
            break
        if c == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] += c
    return [a.strip() for a in arguments]


def pointers_of(headers):
    """name -> [(position, parameter)] of the pointers that a declared function takes."""
    aliases = set(re.findall(r"typedef[^;{}]*\(\*\s*(trama_\w+)\)", headers))
    wanted = {}
    for match in re.finditer(r"\b(trama_\w+)\s*\(", headers):
        parameters = split_arguments(headers[match.end():])
        behind = headers[match.end() + headers[match.end():].index(")"):]
        before = re.split(r"[;{}]", headers[:match.start()])[-1]
        end = re.search(r"[;{]", behind).group()
        if end == "{" or "typedef" in before or not before.strip() or re.search(r"[=(]|\breturn\b", before):
            continue
        wanted[match.group(1)] = [(i, p) for i, p in enumerate(parameters)
                                  if "*" in p or p.split(" ")[0] in aliases]
    return wanted


def nulls_given(source):
    """name -> positions at which a call in the source has NULL."""
    source = re.sub(r'"(\\.|[^"\\])*"', '""', source)
    given = {}
    for match in re.finditer(r"\b(trama_\w+)\s*\(", source):
        for i, argument in enumerate(split_arguments(source[match.end():])):
            if argument in ("((void *)0)", "no_text"):
                given.setdefault(match.group(1), set()).add(i)
    return given


def main():
    at = sys.argv.index("--")
    compiler, sources, flags = sys.argv[1], sys.argv[2:at], sys.argv[at + 1:]
    texts = [preprocessed(compiler, source, flags) for source in sources]
    wanted, given = {}, {}
    for source, text in zip(sources, texts):
        wanted.update(pointers_of(text_of(text, lambda name: re.search(r"/trama(_\w+)?\.h$", name))))
        for name, positions in nulls_given(text_of(text, lambda name: name == source or name.endswith(".def"))).items():
            given.setdefault(name, set()).update(positions)
    missing = [f"{name}: no call with NULL for '{' '.join(parameter.split())}'" for name, pointers in sorted(wanted.items())
               for i, parameter in pointers if i not in given.get(name, ())]
    print("\n".join(missing) or f"{len(wanted)} functions, {sum(map(len, wanted.values()))} pointers")
    return 1 if missing or len(wanted) < 100 else 0


sys.exit(main())
