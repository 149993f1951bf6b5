# SPDX-License-Identifier: Apache-2.0
"""Makes the virtual environment of the integration tests, once for each requirements file.

usage: setup_venv.py VENV REQUIREMENTS
"""

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path


def main() -> int:
    target, requirements = Path(sys.argv[1]), Path(sys.argv[2])
    stamp = target / "requirements.sha256"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return 0
    shutil.rmtree(target, ignore_errors=True)
    venv.EnvBuilder(with_pip=True, symlinks=True).create(target)
    python = target / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "-r", requirements], check=True)
    stamp.write_text(digest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
