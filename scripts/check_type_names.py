#!/usr/bin/env python3
"""Fails where two files define types of one name in one namespace: a program that holds both may use either for the other, and no
compiler that sees one file at a time can tell."""

import collections
import pathlib
import re
import sys

OPENS = re.compile(r"namespace ([\w:]*) ?\{$")
CLOSES = re.compile(r"\}  // namespace")
TYPE = re.compile(r"(?:template <.*> )?(?:struct|class|enum class|enum) (?:alignas\(.*?\) )?(\w+)(?: final)?(?: : .*)? \{")


def types_of(path: pathlib.Path):
    """Names with their namespaces; what an anonymous namespace holds is the file's own."""
    namespaces = []
    for line in path.read_text().splitlines():
        if opened := OPENS.match(line):
            namespaces.append(opened.group(1))
        elif CLOSES.match(line):
            namespaces.pop()
        elif (found := TYPE.match(line)) and "" not in namespaces:
            yield "::".join([*namespaces, found.group(1)])


def main() -> int:
    files = collections.defaultdict(set)
    source = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent / "src"
    for path in sorted(source.rglob("*")):
        if path.suffix in {".h", ".cpp", ".cu", ".cuh"}:
            for name in types_of(path):
                files[name].add(str(path))
    twice = {name: paths for name, paths in files.items() if len(paths) > 1}
    for name, paths in twice.items():
        print(f"{name} is defined in {' and in '.join(sorted(paths))}")
    if not twice:
        print(f"type names: all {len(files)} differ")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
