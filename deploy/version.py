# SPDX-License-Identifier: Apache-2.0
"""Writes the version in the build, in headers, in packages and in manifests, or checks it there.

    python3 deploy/version.py         names the places that do not say what CMakeLists.txt says
    python3 deploy/version.py 0.4.0   cuts that version: writes it everywhere, and the heading of
                                      the changelog

After a cut run proto/gen/generate.py. Where the minor number rises, so does the soname; then build,
and tests/unit/client/abi_test.sh --write makes the new baseline (deploy/COMPATIBILITY.md)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Of each place: the file, and what stands around a version. {V} is all of it, {M}, {N}, {P} are its
# numbers, {S} is the soname's: major and minor while major is 0.
PLACES = [
    ("CMakeLists.txt", "project(voxeld VERSION {V} "),
    ("client/c/include/voxeld.h", "#define VOXELD_VERSION_MAJOR {M}\n"),
    ("client/c/include/voxeld.h", "#define VOXELD_VERSION_MINOR {N}\n"),
    ("client/c/include/voxeld.h", "#define VOXELD_VERSION_PATCH {P}\n"),
    ("client/c/include/voxeld.h", 'the library that runs, "{V}"'),
    ("client/python/voxeld/__init__.py", '__version__ = "{V}"'),
    ("server/instance/instance.h", '#define VXD_VERSION "{V}"'),
    ("deploy/debian/changelog", "voxeld ({V}) "),
    ("deploy/debian/complete.cmake", "lib=libvoxeld{S} "),
    ("deploy/debian/shlibs", "libvoxeld {S} libvoxeld{S} (>= {V})"),
    ("deploy/image/voxeld-container.service", " voxeld:{V}\n"),
    ("deploy/kubernetes/stateless/kustomization.yaml", "newTag: {V}\n"),
    ("deploy/kubernetes/stateless-gpu/kustomization.yaml", "newTag: {V}-cuda\n"),
    ("deploy/kubernetes/state/kustomization.yaml", "newTag: {V}\n"),
    ("deploy/kubernetes/state-gpu/kustomization.yaml", "newTag: {V}-cuda\n"),
    ("tests/data/names/installed.txt", "lib/libvoxeld.so.{S}\n"),
    ("deploy/README.md", "`libvoxeld{S}`"),
    ("deploy/debian/README.md", "`libvoxeld{S}` (lib)"),
    ("deploy/debian/README.md", "| of `libvoxeld{S}` |"),
    ("deploy/package.sh", "libvoxeld{S}, "),
    ("tests/integration/daemon/test_bundle.py", '"libvoxeld.so.{V}"'),
    ("tests/integration/deploy/test_packages.py", '"libvoxeld{S}"'),
    ("tests/unit/client/install_test.sh", "find_package(voxeld {M}.{N} "),
    ("tests/unit/proto/file_formats_test.c", '"info|version"), "{V}"'),
    ("tests/unit/server/request/request_test.c", 'version=\\"{V}\\"'),
]
MARK = re.compile(r"\{([A-Z])\}")


def words_of(version: str) -> dict[str, str]:
    major, minor, patch = version.split(".")
    soname = f"{major}.{minor}" if major == "0" else major
    return {"V": version, "S": soname, "M": major, "N": minor, "P": patch}


def pattern_of(place: str) -> re.Pattern[str]:
    """Finds the place with any version in it."""
    around = re.split(r"\{[A-Z]\}", place)
    return re.compile(r"\d+(?:\.\d+)*".join(re.escape(text) for text in around))


def replaced(version: str) -> Iterator[tuple[str, str, str]]:
    """Yields path, text as it is and text as it should be; each path once."""
    texts: dict[str, list[str]] = {}
    words = words_of(version)
    for path, place in PLACES:
        text = texts.setdefault(path, 2 * [(ROOT / path).read_text()])
        right = MARK.sub(lambda mark: words[mark[1]], place)
        text[1], n = pattern_of(place).subn(lambda _, right=right: right, text[1])
        if n != 1:
            sys.exit(f"{path} has {n} places {place!r}; deploy/version.py should know of one")
    yield from ((path, before, after) for path, (before, after) in texts.items())


def cut_changelog(version: str) -> None:
    path = ROOT / "deploy" / "CHANGELOG.md"
    text, n = re.subn(r"^## Unreleased$", f"## {version}", path.read_text(), flags=re.MULTILINE)
    if n != 1:
        sys.exit("deploy/CHANGELOG.md has no section '## Unreleased' that could become a version's")
    path.write_text(text)


def main(words: list[str]) -> int:
    if len(words) > 1 or words and not re.fullmatch(r"\d+\.\d+\.\d+", words[0]):
        sys.exit(__doc__)
    found = re.search(r"project\(voxeld VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    assert found is not None
    changed = [place for place in replaced(words[0] if words else found[1]) if place[1] != place[2]]
    for path, _, after in changed:
        if words:
            (ROOT / path).write_text(after)
        print(f"{path} {'written' if words else f'says another version than {found[1]}'}")
    if words:
        cut_changelog(words[0])
    return 1 if changed and not words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
