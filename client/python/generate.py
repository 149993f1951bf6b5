# SPDX-License-Identifier: Apache-2.0
"""Makes voxeld/v1/*_pb2.py and .pyi from the schema. They are committed, so that installing
needs no protoc; a test compares them with the schema.

usage: generate.py [OUTPUT_DIRECTORY]    (protoc on the PATH; 3.x code runs with protobuf 4+)
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCHEMA = HERE.parents[1] / "proto"
HEAD = "# SPDX-License-Identifier: Apache-2.0\n# ruff: noqa\n"


def main() -> int:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    protos = sorted((SCHEMA / "voxeld" / "v1").glob("*.proto"))
    options = ["-I", SCHEMA, f"--python_out={out}", f"--pyi_out={out}"]
    subprocess.run(["protoc", *options, *protos], check=True)
    for path in sorted((out / "voxeld" / "v1").glob("*_pb2.py*")):
        code = path.read_text().removeprefix("# -*- coding: utf-8 -*-\n")
        path.write_text(HEAD + code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
