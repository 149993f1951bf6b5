# SPDX-License-Identifier: Apache-2.0
"""Parameters of URLs in the OpenAPI description: beside files as bodies, and of files by GET. Each
has a schema, a sentence, and an example that the server takes."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
NUMBER = r"[-+0-9.eE]+"
NAME = r"^[a-z0-9][a-z0-9._-]{0,62}$"
PER_CLOUD = ["pcd", "ply", "npy", "npz", "las", "kitti", "nuscenes"]
FLAG: Json = {"type": "boolean"}
COUNT: Json = {"type": "integer", "minimum": 0}
REAL: Json = {"type": "number"}
TEXT: Json = {"type": "string"}
NAMED: Json = {"type": "string", "pattern": NAME}
NAMES: Json = {"type": "string", "pattern": f"^{NAME[1:-1]}(,{NAME[1:-1]}){{0,6}}$"}
POSE = "translation x,y,z in metres, and behind it the quaternion qx,qy,qz,qw"


def numbers(*counts: int) -> Json:
    forms = "|".join(",".join([NUMBER] * n) for n in counts)
    return {"type": "string", "pattern": f"^({forms})$"}


def boxes() -> Json:
    box = f"{NUMBER}(,{NUMBER}){{5}}"
    return {"type": "string", "pattern": f"^{box}(,{box}){{0,31}}$"}


def words(*known: str) -> Json:
    return {"type": "string", "enum": list(known)}


def pose() -> Json:
    return {"type": "string", "pattern": numbers(3, 7)["pattern"][:-2] + "|estimate)$"}


# Key -> schema, example, what it is; a key with a method before it holds for that method alone.
BESIDE_FILES: dict[str, tuple[Json, Any, str]] = {
    "format": (words(*PER_CLOUD), "npy", "what the file is"),
    "scene_import_mesh format": (words("ply", "obj"), "obj", "what the file is"),
    "volume_integrate format": (
        words("png", "uint16", "float32"),
        "float32",
        "what the depth image is: a PNG, or width x height little-endian numbers",
    ),
    "name": (NAMED, "yard", "the object's name"),
    "frame_id": (TEXT, "lidar", "of the cloud"),
    "stamp_ns": ({"type": "integer", "format": "int64"}, 1700000000000000000, "of the cloud"),
    "min_range": (REAL, 0.5, "metres: nearer points are the robot itself, and left out"),
    "body": (
        boxes(),
        "-1,-0.5,-1,0.5,0.5,0.2",
        "boxes of the robot, whose points are left out: low x,y,z and high x,y,z of each, "
        "in metres in the sensor's frame",
    ),
    "size": (numbers(1, 3), "0.1", "voxel edge in metres: one number, or x,y,z"),
    "range": (numbers(6), "-50,-50,-3,50,50,5", "low x,y,z and high x,y,z in metres"),
    "rule": (words("constant", "label", "colour", "ramp", "height"), "height", "of materials"),
    "voxelize rule": (words("spconv", "minkowski", "double"), "minkowski", "of quantization"),
    "scene_import_mesh rule": (words("conservative", "thin"), "thin", "which voxels are met"),
    "order": (words("morton", "first_point"), "morton", "of the voxels"),
    "origin": (numbers(3), "0,0,0", "the lattice's zero in the map, x,y,z in metres"),
    "features": (TEXT, "x,y,z", "names of the channels, between commas"),
    "no_features": (FLAG, False, "coordinates and counts only"),
    "reduce": (TEXT, "mean,max", "some of mean, sum, min, max, first, between commas"),
    "outputs": (TEXT, "*", "names of outputs between commas; * is all"),
    "voxelize outputs": (
        TEXT,
        "coords,counts",
        "some of coords, counts, inverse, points, first_index",
    ),
    "max_points": (COUNT, 32, "points kept a voxel; 0 = all"),
    "max_voxels": (COUNT, 20000, "voxels kept; 0 = all"),
    "network": (NAMED, "minkunet42", "a loaded network"),
    "dtype": (words("float32", "float16"), "float32", "of the values"),
    "no_coords": (FLAG, True, "without the voxels' coordinates"),
    "expect_digest": (
        {"type": "string", "pattern": "^[0-9a-f]{8,64}$"},
        "0123456789abcdef",
        "how the network's digest must begin",
    ),
    "pose": (pose(), "0,0,1.5", f"of the sensor in the map: {POSE}; or estimate"),
    "end_pose": (numbers(3, 7), "0.1,0,1.5", f"of the sensor at the scan's end: {POSE}"),
    "prior": (numbers(3, 7), "0,0,0", f"where the sensor is expected: {POSE}"),
    "carve": (FLAG, True, "frees what rays pass"),
    "volume_integrate carve": (REAL, 0.5, "frees what rays pass, so far in metres"),
    "volume_integrate_points carve": (REAL, 0.5, "frees what rays pass, so far in metres"),
    "max_range": (REAL, 50, "rays end there, in metres"),
    "erase": (FLAG, False, "what rays pass is emptied at once"),
    "discretize": (FLAG, False, "one ray a hit voxel"),
    "material": (COUNT, 1, "number of the material"),
    "field": (TEXT, "z", "the cloud's field that the rule reads"),
    "low": (REAL, 0, "of the rule's ramp"),
    "high": (REAL, 5, "of the rule's ramp"),
    "if_version": (COUNT, 0, "the version that the scene must have; 0 = any"),
    "labels": (TEXT, "1:1,2:2", "LABEL:MATERIAL, and more behind commas; numbers or names"),
    "output": (TEXT, "labels", "the network's output of labels"),
    "odometry": (NAMED, "robot", "finds the pose"),
    "time_field": (TEXT, "t", "the cloud's field of the points' times"),
    "time_begin": (REAL, 0, "the time of pose, in the field's unit"),
    "time_end": (REAL, 0.1, "the time of end_pose, in the field's unit"),
    "lidar": (numbers(4), "32,1024,15,-15", "rows,columns,top,bottom; elevations in degrees"),
    "azimuth": (numbers(2), "0,360", "begin,span of the columns in degrees"),
    "range_min": (REAL, 0.5, "nearer points are left out, in metres"),
    "range_max": (REAL, 80, "farther points are left out, in metres"),
    "weight": (REAL, 1, "of the observation"),
    "inverse_square": (FLAG, False, "weights fall with the square of the distance"),
    "by_angle": (FLAG, False, "weights by the angle to the surface"),
    "label_field": (TEXT, "label", "the cloud's field of labels"),
    "fx": (REAL, 2, "focal length in pixels"),
    "fy": (REAL, 2, "focal length in pixels"),
    "cx": (REAL, 1, "principal point in pixels"),
    "cy": (REAL, 1, "principal point in pixels"),
    "width": ({"type": "integer", "minimum": 1, "maximum": 16384}, 2, "of the image"),
    "height": ({"type": "integer", "minimum": 1, "maximum": 16384}, 2, "of the image"),
    "distortion": (numbers(4, 5, 8), "0,0,0,0", "k1,k2,p1,p2; also k3; also k4,k5,k6"),
    "depth_scale": (REAL, 1, "metres a unit of the image"),
    "depth_min": (REAL, 0.2, "nearer pixels are left out, in metres"),
    "depth_max": (REAL, 8, "farther pixels are left out, in metres"),
    "scale": (REAL, 1, "of the mesh's vertices"),
    "offset": (numbers(3), "0,0,0", "added to the mesh's vertices, x,y,z"),
    "in_voxels": (FLAG, False, "coordinates count voxels"),
}
AT = (TEXT, "3", "a version's number or a snapshot's name; absent = the newest")
VECTOR = numbers(3)
PICTURE: dict[str, tuple[Json, Any, str]] = {
    "eye": (VECTOR, "-10,0,8", "the camera, x,y,z in metres"),
    "look": (VECTOR, "0,0,0", "what it looks at, x,y,z in metres"),
    "up": (VECTOR, "0,0,1", "what is up in the picture"),
    "fov": (REAL, 60, "between the top and the bottom edge, degrees"),
    "camera": (words("pinhole", "orthographic", "equirectangular"), "pinhole", "the projection"),
    "mode": (
        words("colour", "height", "depth", "normal", "material", "ao", "path", "age", "label"),
        "colour",
        "what a pixel says",
    ),
    "view_height_m": (REAL, 20, "of orthographic cameras"),
    "samples": (COUNT, 1, "rays a pixel"),
    "ao_samples": (COUNT, 16, "rays of ambient occlusion a pixel"),
    "ao_radius_m": (REAL, 2, "how far they look"),
    "bounces": (COUNT, 2, "of light's paths"),
    "seed": (COUNT, 1, "of random rays"),
    "no_shadows": (FLAG, False, "the sun shines through"),
    "sun_direction": (VECTOR, "-1,-1,2", "towards the sun"),
    "sun": (REAL, 1, "its strength"),
    "ambient": (REAL, 0.3, "the sky's strength"),
    "variation": (REAL, 0.1, "of colours from voxel to voxel"),
    "z_low_m": (REAL, 0, "where the colours of heights begin"),
    "z_high_m": (REAL, 5, "where they end"),
    "detail": (REAL, 1, "pixels that the smallest cell covers"),
    "clip": (numbers(6), "-20,-20,0,20,20,3", "only this box is shown: its corners"),
    "volumes": (NAMES, "kitchen", "volumes that are in the picture as well: their names"),
    "min_weight": (REAL, 1, "their voxels of a lower weight are unknown"),
    "quality": ({"type": "integer", "minimum": 1, "maximum": 100}, 85, "of a JPEG"),
    "size": ({"type": "string", "pattern": "^[0-9]+x[0-9]+$"}, "64x36", "WIDTHxHEIGHT"),
    "at": AT,
}
VOLUME_PICTURE: dict[str, tuple[Json, Any, str]] = {
    **{k: PICTURE[k] for k in ("eye", "look", "up", "fov")},
    "camera": (words("pinhole", "panorama"), "pinhole", "the projection"),
    "mode": (
        words("colour", "height", "normal", "label", "depth"),
        "height",
        "what a pixel says",
    ),
    **{k: PICTURE[k] for k in ("sun_direction", "sun", "ambient", "z_low_m", "z_high_m")},
    "min_weight": (REAL, 1, "voxels of a lower weight are unknown"),
    "depth_max_m": (REAL, 20, "nothing is seen farther away"),
    **{k: PICTURE[k] for k in ("quality", "size")},
}
COSTMAP: dict[str, tuple[Json, Any, str]] = {
    "kind": (words("costmap", "projected", "slice"), "costmap", "what a cell says"),
    "box": (numbers(6), "-5,-5,0,5,5,2", "what is mapped: its corners"),
    "in_voxels": (FLAG, False, "box and z count voxels"),
    "z": (numbers(1, 2), "0.2,1.8", "low,high of what can be hit; of a slice its height"),
    "unknown": (words("kept", "free", "lethal"), "kept", "what unknown cells count as"),
    "robot_radius_m": (REAL, 0.3, "of the inscribed circle"),
    "inflation_radius_m": (REAL, 0.5, "how far costs reach"),
    "cost_scaling": (REAL, 3, "how fast they fall"),
    "image": (TEXT, "costmap.pgm", "the picture's name in the YAML"),
    "at": AT,
}
WATCH: dict[str, tuple[Json, Any, str]] = {
    "level": (COUNT, 0, "of the cells; 0 = voxels"),
    "box": (numbers(6), "-5,-5,0,5,5,2", "what is watched: its corners"),
    "in_voxels": (FLAG, False, "box counts voxels"),
    "max_bytes": ({"type": "integer", "minimum": 0, "maximum": 4194304}, 262144, "of an event"),
    "after": (
        {"type": "string", "pattern": "^[0-9]+-[0-9]+(-[0-9]+-[0-9]+)?$"},
        "1-1",
        "the id of the last event that was seen; Last-Event-ID goes before it",
    ),
}
WATCH_VOLUME: dict[str, tuple[Json, Any, str]] = {
    "box": (numbers(6), "-5,-5,0,5,5,2", "only blocks that it touches: its corners"),
    "min_weight": (REAL, 1, "voxels of a lower weight are unknown"),
    "points": (FLAG, False, "points instead of a mesh"),
    "albedo": (FLAG, False, "colours without light and shadow, as refinement found them"),
    "keys_only": (FLAG, False, "only which blocks have changed"),
    **{k: WATCH[k] for k in ("max_bytes", "after")},
}


def parameter(key: str, spec: tuple[Json, Any, str]) -> Json:
    schema, example, what = spec
    return {
        "name": key,
        "in": "query",
        "required": False,
        "description": what,
        "schema": schema,
        "example": example,
    }


def of(table: dict[str, tuple[Json, Any, str]]) -> list[Json]:
    return [parameter(key, spec) for key, spec in table.items()]


def beside_file(method: str, keys: list[str]) -> list[Json]:
    return [
        parameter(key, BESIDE_FILES.get(f"{method} {key}") or BESIDE_FILES[key]) for key in keys
    ]
