#!/usr/bin/env python3
"""Fails where an include points up or sideways (see "Layers" in ARCHITECTURE.md, which this table is), and where a file that is
named as a test holds none: builds leave such files out of the library (cmake/CoterieModule.cmake)."""

import pathlib
import re
import sys

# What a folder of src/ may include, besides itself.
ALLOWED = {
    "base": set(),
    "quant": {"base"},
    "gguf": {"base", "quant"},
    "tokenizer": {"base", "gguf"},
    "chat": {"base", "tokenizer", "sampling"},
    "kernels": {"base", "quant"},
    "devices": {"base"},
    "expert_cache": {"base", "devices"},
    "kv_cache": {"base", "kernels"},
    "models": {"base", "quant", "gguf", "kernels", "kv_cache"},
    "engine": {"base", "quant", "gguf", "kernels", "devices", "expert_cache", "kv_cache", "models"},
    "sampling": {"base", "tokenizer"},
    "synth": {"base", "quant", "gguf", "tokenizer"},
    "speculative": {"base", "tokenizer"},
    "scheduler": {"base", "tokenizer", "speculative", "expert_cache", "kv_cache", "models", "engine", "sampling"},
    "server": {"base", "tokenizer", "chat", "sampling", "scheduler"},
    "cli": {"base", "quant", "gguf", "tokenizer", "chat", "kernels", "devices", "expert_cache", "models", "engine", "sampling",
            "synth", "speculative", "scheduler", "server"},
}
# Tests may build what they need with the engine and the models above them.
ALLOWED_IN_TESTS = {"synth": {"engine", "models", "kernels"}}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
TEST = re.compile(r"^\s*(TYPED_)?TEST(_F|_P)?\(|^int main\(", re.MULTILINE)


def violations(root: pathlib.Path):
    for path in sorted(root.rglob("*")):
        if path.suffix not in {".h", ".cpp", ".cu", ".cuh"}:
            continue
        folder = path.relative_to(root).parts[0]
        allowed = ALLOWED.get(folder, set()) | {folder}
        if "_test." in path.name or "_testing." in path.name or "_for_test." in path.name:
            allowed = allowed | ALLOWED_IN_TESTS.get(folder, set())
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1).split("/")[0]
            if folder not in ALLOWED:
                yield f"{path}:{number}: folder '{folder}' is not in the table of scripts/check_includes.py"
                break
            if target in ALLOWED and target not in allowed:
                yield f"{path}:{number}: '{folder}' may not include \"{match.group(1)}\""


def tests_without_tests(root: pathlib.Path):
    for path in sorted(root.rglob("*_test.cpp")):
        if not TEST.search(path.read_text()):
            yield f"{path}: named as a test, has none, and would be missing from its library"


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent / "src"
    found = [*violations(root), *tests_without_tests(root)]
    print("\n".join(found) if found else "includes: all point down")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
