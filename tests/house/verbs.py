# SPDX-License-Identifier: Apache-2.0
"""Every name in namespace partita stands in the pages of verbs as code, and every header named there exists:
verbs.py INCLUDE_DIR PAGE..."""
import pathlib
import re
import sys

from public_names import public_names


def complaints(include, page):
    code = re.findall(r"`([^`\n]*)`", page)
    words = {word for span in code for word in re.findall(r"\w+", span)}
    found = [f"{header}: {name} is on no page" for name, header in public_names(include).items() if name not in words]
    headers = {span for span in code if re.fullmatch(r"[\w/]+\.hpp", span)}
    return found + [f"a page names {header}, which is not there" for header in sorted(headers)
                    if not (include / header).exists() and not (include / "partita" / header).exists()]


def main():
    found = complaints(pathlib.Path(sys.argv[1]), "\n".join(pathlib.Path(page).read_text() for page in sys.argv[2:]))
    print("\n".join(found) or "every public name is on a page")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
