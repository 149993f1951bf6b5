# SPDX-License-Identifier: Apache-2.0
"""Voxelizes an .npy scan with nothing of ours but the schema: stock protobuf and pynng.

protoc -I proto --python_out=DIR proto/voxeld/v1/*.proto; pip install numpy protobuf pynng
usage: PYTHONPATH=DIR VOXELD_URL=ipc:///... python3 voxelize.py scan.npy
"""

import os
import sys

import numpy as np
import pynng
from voxeld.v1 import common_pb2, rpc_pb2


def main() -> int:
    points = np.load(sys.argv[1]).astype("<f4")[:, :3].copy()
    request = rpc_pb2.Request()
    request.header.timeout_ms = 5000
    cloud = request.voxelize.clouds.add(point_step=12, data=points.tobytes())
    for offset, name in ((0, "x"), (4, "y"), (8, "z")):
        cloud.fields.add(name=name, offset=offset, dtype=common_pb2.FLOAT32)
    size = request.voxelize.size
    size.x = size.y = size.z = 0.1

    # A plain REQ socket sends again after a minute unless this is set.
    with pynng.Req0(dial=os.environ["VOXELD_URL"], resend_time=-1) as socket:
        socket.send(request.SerializeToString())
        response = rpc_pb2.Response.FromString(socket.recv())
    if response.header.code != common_pb2.OK:
        print(response.header.field, response.header.message, file=sys.stderr)
        return 1
    coords = np.frombuffer(response.voxelize.coords.data, "<i4").reshape(-1, 4)
    print(f"{len(coords)} voxels from {len(points)} points")
    print(coords[:3, 1:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
