# SPDX-License-Identifier: Apache-2.0
"""Debian's PETSc, unpacked into a folder where it is not installed; nothing is installed for the system."""
import ctypes.util
import pathlib
import platform
import re
import subprocess


def said(*command, **how):
    return subprocess.run(command, check=True, text=True, capture_output=True, **how).stdout


def names():
    """The newest libpetsc-real and what it needs that is not installed."""
    found = sorted(re.findall(r"^libpetsc-real[\d.]+$", said("apt-cache", "pkgnames", "libpetsc-real"), re.MULTILINE))
    return re.findall(r"^Inst (\S+)", said("apt-get", "install", "--simulate", "--no-install-recommends", found[-1]), re.MULTILINE)


def unpacked(folder):
    """The folder of the libraries, filled on the first call; None where PETSc is installed, or Debian does not have it."""
    libraries = folder / "usr" / "lib" / f"{platform.machine()}-linux-gnu"
    if ctypes.util.find_library("petsc_real"):
        return None
    try:
        if not folder.exists():
            part = pathlib.Path(f"{folder}.part")
            part.mkdir(exist_ok=True)
            said("apt-get", "download", *names(), cwd=part)
            for package in part.glob("*.deb"):
                said("dpkg", "-x", str(package), str(part))
                package.unlink()
            part.rename(folder)
    except (OSError, IndexError, subprocess.CalledProcessError):
        return None
    return libraries
