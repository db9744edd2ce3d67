#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the walls of the house (ARCHITECTURE.md) that no compiler holds.

Prints one line a finding, as file:line: message, and exits 1 when there are
any. Looks at what git tracks.
"""

import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Which project folders the sources of a folder may include. The longest
# matching prefix counts; tests and main programs may see everything.
MAY_INCLUDE = {
    "base": ["base"],
    "storage": ["base", "cubicml", "storage"],
    "predictor": ["base", "cubicml", "predictor"],
    "server/core": ["base", "cubicml", "predictor", "server/core",
                    "storage/study_store.h"],
    "server/rpc": ["base", "cubicml", "google/rpc", "predictor/trainer.h",
                   "server/core", "server/rpc", "storage"],
    "client": ["base", "cubicml", "google/rpc", "client"],
    "client/include": ["cubicml"],
    "client/replay": ["base", "cubicml", "client", "predictor", "server",
                      "storage"],
    "client/examples": ["client", "cubicml"],
}
PROJECT_FOLDERS = ("base/", "cubicml/", "client/", "google/rpc/",
                   "predictor/", "server/", "storage/", "tests/")

# Libraries that only some files may know.
CONFINED = [
    (r'[<"]sqlite3\.h', ["storage/*.cc", "storage/sqlite_db.h",
                         "predictor/expression.cc", "tests/*"]),
    (r'[<"](torch|ATen|c10)/', ["predictor/torch_*.cc",
                                "client/examples/dlrm/*",
                                "tests/client/examples/*"]),
    (r'[<"]grpcpp/', ["server/rpc/*", "client/*", "tests/*"]),
    (r'[<"]prometheus/', ["server/rpc/*", "tests/*"]),
]

# What would make the core depend on the world.
FORBIDDEN = [
    (r"\babsl::(Now|SleepFor)\b", "use base/clock.h; never sleep",
     ["base/*", "tests/support/*"]),
    (r"\b(std::random_device|std::mt19937|rand\(\))",
     "use base/rng.h", ["base/*"]),
    (r"\b(sleep_for|sleep_until|usleep)\b", "never sleep; wait for a condition",
     []),
    (r"\babsl::Mutex\b", "use base/mutex.h", []),
    (r"\bstd::string_view\b", "use absl::string_view",
     ["client/examples/dlrm/*"]),
]

MAX_LINES = {"source": 500, "test": 800}


def tracked():
    out = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True,
                         capture_output=True).stdout.decode()
    return sorted(p for p in out.split("\0") if p and (ROOT / p).is_file())


def matches(path, patterns):
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def is_main_program(path):
    return path.startswith("tests/") or path == "server/main.cc"


def check_includes(path, number, line):
    found = re.match(r'#include "([^"]+)"', line)
    if not found or is_main_program(path):
        return
    target = found.group(1)
    if not target.startswith(PROJECT_FOLDERS):
        return
    folders = [f for f in MAY_INCLUDE if path.startswith(f + "/")]
    if not folders:
        return
    allowed = MAY_INCLUDE[max(folders, key=len)]
    if not any(target == a or target.startswith(a + "/") for a in allowed):
        yield f"{path}:{number}: may not include {target} (ARCHITECTURE.md)"


def check_line(path, number, line):
    yield from check_includes(path, number, line)
    if line.startswith("#include"):
        for pattern, allowed in CONFINED:
            if re.search(pattern, line) and not matches(path, allowed):
                yield f"{path}:{number}: {line.split()[1]} is confined to " + \
                    ", ".join(allowed)
    if re.search(r"\b(TODO|FIXME|XXX)\b", line):
        yield f"{path}:{number}: do it, or open an issue"
    code = line.split("//")[0]
    for pattern, advice, allowed in FORBIDDEN:
        found = re.search(pattern, code)
        if found and not matches(path, allowed):
            yield f"{path}:{number}: {found.group(0)}: {advice}"


def check_source(path):
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    if not lines or "SPDX-License-Identifier: Apache-2.0" not in lines[0]:
        yield f"{path}:1: the first line names the licence (SPDX)"
    limit = MAX_LINES["test" if path.startswith("tests/") else "source"]
    if len(lines) > limit:
        yield f"{path}:{limit}: {len(lines)} lines, the limit is {limit}"
    for number, line in enumerate(lines, 1):
        yield from check_line(path, number, line)
    if path.endswith(".h"):
        guard = "CUBICML_" + re.sub(r"[^A-Z0-9]", "_", path.upper()) + "_"
        guard = guard.replace("CUBICML_CLIENT_INCLUDE_CUBICML_", "CUBICML_")
        if f"#ifndef {guard}" not in lines:
            yield f"{path}:1: the include guard is {guard}"


def check_format(sources):
    if shutil.which("clang-format") is None:
        yield "clang-format is not installed"
        return
    run = subprocess.run(
        ["clang-format", "--dry-run", "-Werror", "--ferror-limit=1", *sources],
        cwd=ROOT, capture_output=True, text=True)
    found = [line for line in run.stderr.splitlines()
             if "clang-format-violations" in line]
    yield from found
    if run.returncode != 0 and not found:
        yield f"clang-format failed: {run.stderr.strip()}"


def main():
    files = tracked()
    sources = [p for p in files if p.endswith((".cc", ".h"))]
    findings = []
    for path in sources:
        findings.extend(check_source(path))
    findings.extend(check_format(sources))
    for finding in findings:
        print(finding)
    print(f"lint: {len(sources)} sources, {len(findings)} findings",
          file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
