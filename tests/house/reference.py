# SPDX-License-Identifier: Apache-2.0
"""The API reference is made without a warning, and no link in it is dead: reference.py DOXYGEN DOXYFILE PROJECT"""
import pathlib
import re
import subprocess
import sys
import tempfile


def dead_links(html):
    """The files that pages name and that are not there, each with one page that names it."""
    dead = {}
    for page in sorted(html.glob("*.html")):
        for link in re.findall(r'(?:href|src|data)="([^"#]+)', page.read_text(errors="replace")):
            if ":" not in link and not (html / link).exists():
                dead.setdefault(link, page.name)
    return dead


def complaints(doxygen, config, project):
    """What is wrong with the reference made under these settings."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([doxygen, "-"], cwd=project, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             input=config + f"\nOUTPUT_DIRECTORY = {folder}\n")
        html = pathlib.Path(folder, "html")
        found = run.stdout.splitlines() + [f"{page}: a link to {link}, which is not there" for link, page in dead_links(html).items()]
        if not found and (run.returncode or not (html / "index.html").exists()):
            found = [f"doxygen made nothing and returned {run.returncode}"]
        return found


def main():
    found = complaints(sys.argv[1], pathlib.Path(sys.argv[2]).read_text(), sys.argv[3])
    print("\n".join(found) or "no warning, no dead link")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
