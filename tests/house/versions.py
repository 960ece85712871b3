#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wherever the project says its version, it is that of project(VERSION): versions.py PROJECT

The newest entry of CHANGELOG.md may be "Unreleased" instead. Also, the recipe of Spack compiles, and that of conda and
CITATION.cff are YAML, where PyYAML is here to say so."""
import pathlib
import re
import sys

# Where versions stand: a file, and an expression of which every group is one, or a part of one.
PLACES = {
    "include/partita/version.hpp": r"\bmajor = (\d+);.*\bminor = (\d+);.*\bpatch = (\d+);",
    "CHANGELOG.md": r"\n## ([^\n]+)",
    "CITATION.cff": r"\nversion: (\S+)",
    "packaging/spack/package.py": r'\n    version\("([^"]+)"',
    "packaging/conda/meta.yaml": r"\n  version: (\S+)",
    "packaging/vcpkg/ports/partita/vcpkg.json": r'"version-semver": "([^"]+)"',
    "docs/install.md": r"libpartita-dev_([\d.]+)_all\.deb",
}


def broken(name, text):
    """Why the file cannot be read, or None."""
    try:
        if name.endswith(".py"):
            compile(text, name, "exec")
        elif name.endswith((".yaml", ".cff")):
            try:
                import yaml
            except ImportError:
                return None
            yaml.safe_load(text)
    except Exception as error:  # of either language
        return " ".join(str(error).split())


def violations(root):
    version = re.search(r"\bproject\(\w+ VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text())[1]
    for name, place in PLACES.items():
        text = (root / name).read_text()
        found = re.search(place, text, re.S)
        said = ".".join(found.groups()) if found else "none"
        if said != version and (name, said) != ("CHANGELOG.md", "Unreleased"):
            yield f"{name}: the version is {said}, that of the project {version}"
        error = broken(name, text)
        if error:
            yield f"{name}: {error}"


if __name__ == "__main__":
    found = list(violations(pathlib.Path(sys.argv[1])))
    print("\n".join(found + [f"{len(PLACES)} files, {len(found)} violations"]))
    sys.exit(1 if found else 0)
