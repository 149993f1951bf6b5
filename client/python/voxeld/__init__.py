# SPDX-License-Identifier: Apache-2.0
"""Client of the voxeld service: point clouds to voxels, NumPy in and out.

    import numpy as np, voxeld

    with voxeld.connect() as client:
        voxels = client.voxelize(np.load("scan.npy"), size=0.1)
        voxels.coords   # m x 4: item, x, y, z
        voxels.mean     # m x C

Conventions, as everywhere in voxeld: positions are metres, frames right-handed, quaternions
(x, y, z, w), times nanoseconds since the Unix epoch; timeouts are seconds, as in Python.
Failures are exceptions of class voxeld.Error, one subclass a status code.
"""

from .client import Client, connect
from .cloud import Cloud, DType, Field, Pose, Sweep
from .errors import (
    Aborted,
    AlreadyExists,
    Cancelled,
    Code,
    DataLoss,
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    OutOfRange,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unimplemented,
    Unknown,
)
from .reply import Item, MethodStatus, SelfTest, ServerInfo, SlowRequest, Status, Voxels

__version__ = "0.1.0"

__all__ = [
    "Aborted",
    "AlreadyExists",
    "Cancelled",
    "Client",
    "Cloud",
    "Code",
    "DType",
    "DataLoss",
    "DeadlineExceeded",
    "Error",
    "FailedPrecondition",
    "Field",
    "Internal",
    "InvalidArgument",
    "Item",
    "MethodStatus",
    "NotFound",
    "OutOfRange",
    "PermissionDenied",
    "Pose",
    "ResourceExhausted",
    "SelfTest",
    "ServerInfo",
    "SlowRequest",
    "Status",
    "Sweep",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "Unknown",
    "Voxels",
    "connect",
]
