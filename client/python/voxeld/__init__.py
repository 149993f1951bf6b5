# SPDX-License-Identifier: Apache-2.0
"""Client of the voxeld service: point clouds to voxels, NumPy in and out.

    import numpy as np, voxeld

    with voxeld.connect() as client:
        voxels = client.voxelize(np.load("scan.npy"), size=0.1)
        voxels.coords   # m x 4: item, x, y, z
        voxels.mean     # m x C
        seen = client.map_create("seen", {"count": np.uint64})
        seen.update(voxels.coords[:, 1:], {"count": voxels.counts.astype(np.uint64)},
                    combine="add", insert_missing=True)
        yard = client.scene_create("yard", voxel_size=0.1, track_free=True)
        yard.integrate(np.load("scan.npy"), max_range=50)
        yard.cast_rays((0, 0, 1.5), [[1, 0, 0]]).distances
        yard.render()   # a picture
        place = client.infer("svtnet", np.load("scan.npy"))
        place["descriptor"]   # 1 x 256

Conventions, as everywhere in voxeld: positions are metres, frames right-handed, quaternions
(x, y, z, w), times nanoseconds since the Unix epoch; timeouts are seconds, as in Python.
Failures are exceptions of class voxeld.Error, one subclass a status code.
"""

from .calls import StageTimes, trace
from .client import Client, connect
from .cloud import Body, Cloud, Deskew, DType, Field, Pose, Sweep
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
from .generated.admin_records import (
    Backup,
    CurrentRequest,
    MemoryOwner,
    MethodStatus,
    SelfTest,
    ServerInfo,
    SlowRequest,
    Status,
)
from .generated.backup_records import BackupInfo
from .generated.scene_records import (
    Cells,
    Change,
    Collected,
    Diff,
    Edited,
    Filter,
    Integrated,
    Log,
    LogOdds,
    Material,
    NearestVoxels,
    Overlap,
    RayHits,
    SceneInfo,
    Snapshot,
    Undone,
    Verified,
    Version,
    VoxelValues,
)
from .generated.field_records import Contacts, DistanceField, Distances
from .generated.grid_records import Frontiers, Grid
from .generated.mesh_records import MeshImported
from .generated.refine_records import Refined, RefinedKeyframe, RefineLoss, RefineStatus
from .generated.map_records import (
    Entries,
    Erased,
    Found,
    Inserted,
    Lattice,
    MapArray,
    MapInfo,
    Saved,
    Updated,
)
from .generated.posegraph_records import (
    PosegraphAdded,
    PosegraphContent,
    PosegraphEdge,
    PosegraphInfo,
    PosegraphKeyframeAdded,
    PosegraphMatch,
    PosegraphNode,
    PosegraphOptimized,
    PosegraphPlaces,
    PosegraphPrior,
    PosegraphRebuilding,
    PosegraphRebuilt,
    PosegraphRunning,
    PosegraphSolution,
    PosegraphVersion,
)
from .generated.odometry_records import OdometryInfo, OdometryPose
from .generated.slac_records import SlacDeformed, SlacMoved, SlacProgress, SlacResult
from .generated.token_records import Token
from .generated.upkeep_records import Decayed, Evidence
from .generated.volume_records import (
    Camera,
    Lidar,
    Surface,
    VolumeBox,
    VolumeCleared,
    VolumeDecayed,
    VolumeInfo,
    VolumeIntegrated,
    VolumeImage,
    VolumePicture,
    VolumeScanned,
    VolumeTrack,
    VolumeTracked,
)
from .generated.why_records import Why, WhyAhead
from .maps import Map, Merge
from .volume.keyframes import Keyframe
from .posegraphs import Posegraph
from .odometries import Odometry
from .shown import show_all
from .volume.watches import BlockSurface, GrowingSurface, VolumeWatched
from .volumes import Volume
from .networks import Inference, InferItem, InferOutput
from .generated.network_records import NetworkInfo, NetworkLayer, NetworkOutput, Timings
from .pictures import Picture
from .pipeline import Pipeline
from .repeat import repeat
from .reply import Item, Merged, Voxels
from .scene.differences import Difference
from .scene.records import (
    Ball,
    Box,
    Capsule,
    Copy,
    Dense,
    HalfSpace,
    Heightfield,
    Operation,
    PointList,
    VoxelState,
)
from .scenes import Scene
from .watching import Heads, Watched, WatchPoint

__version__ = "0.3.0"

__all__ = [
    "Aborted",
    "AlreadyExists",
    "Backup",
    "BackupInfo",
    "Ball",
    "BlockSurface",
    "Body",
    "Box",
    "Camera",
    "Cancelled",
    "Capsule",
    "Cells",
    "Change",
    "Client",
    "Cloud",
    "Code",
    "Collected",
    "Contacts",
    "Copy",
    "CurrentRequest",
    "DType",
    "DataLoss",
    "DeadlineExceeded",
    "Decayed",
    "Dense",
    "Deskew",
    "Diff",
    "Difference",
    "DistanceField",
    "Distances",
    "Edited",
    "Entries",
    "Erased",
    "Error",
    "Evidence",
    "FailedPrecondition",
    "Field",
    "Filter",
    "Found",
    "Frontiers",
    "Grid",
    "GrowingSurface",
    "HalfSpace",
    "Heads",
    "Heightfield",
    "InferItem",
    "InferOutput",
    "Inference",
    "Inserted",
    "Integrated",
    "Internal",
    "InvalidArgument",
    "Item",
    "Lattice",
    "Keyframe",
    "RefineLoss",
    "RefineStatus",
    "Refined",
    "RefinedKeyframe",
    "Lidar",
    "Log",
    "LogOdds",
    "Map",
    "MapArray",
    "MapInfo",
    "Material",
    "Merge",
    "Merged",
    "MeshImported",
    "MemoryOwner",
    "MethodStatus",
    "NearestVoxels",
    "NetworkInfo",
    "NetworkLayer",
    "NetworkOutput",
    "NotFound",
    "Odometry",
    "OdometryInfo",
    "OdometryPose",
    "Operation",
    "OutOfRange",
    "Overlap",
    "PermissionDenied",
    "Picture",
    "Pipeline",
    "PointList",
    "Posegraph",
    "PosegraphAdded",
    "PosegraphContent",
    "PosegraphEdge",
    "PosegraphInfo",
    "PosegraphKeyframeAdded",
    "PosegraphMatch",
    "PosegraphNode",
    "PosegraphOptimized",
    "PosegraphPlaces",
    "PosegraphRebuilding",
    "PosegraphRebuilt",
    "PosegraphPrior",
    "PosegraphRunning",
    "PosegraphSolution",
    "PosegraphVersion",
    "Pose",
    "RayHits",
    "ResourceExhausted",
    "Saved",
    "Scene",
    "SceneInfo",
    "SelfTest",
    "ServerInfo",
    "SlowRequest",
    "Snapshot",
    "StageTimes",
    "Status",
    "Surface",
    "Sweep",
    "Timings",
    "SlacDeformed",
    "SlacMoved",
    "SlacProgress",
    "SlacResult",
    "Token",
    "Unauthenticated",
    "Unavailable",
    "Undone",
    "Unimplemented",
    "Unknown",
    "Updated",
    "Verified",
    "Version",
    "Volume",
    "VolumeBox",
    "VolumeCleared",
    "VolumeDecayed",
    "VolumeInfo",
    "VolumeIntegrated",
    "VolumeImage",
    "VolumePicture",
    "VolumeScanned",
    "VolumeTrack",
    "VolumeTracked",
    "VolumeWatched",
    "VoxelState",
    "VoxelValues",
    "Voxels",
    "WatchPoint",
    "Watched",
    "Why",
    "WhyAhead",
    "connect",
    "repeat",
    "trace",
]

show_all(globals()[name] for name in __all__)
