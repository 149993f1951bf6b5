# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
from voxeld.v1 import common_pb2 as _common_pb2
from voxeld.v1 import scene_pb2 as _scene_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
RENDER_AGE: RenderMode
RENDER_AO: RenderMode
RENDER_COLOUR: RenderMode
RENDER_DEPTH: RenderMode
RENDER_EQUIRECTANGULAR: RenderCamera
RENDER_HEIGHT: RenderMode
RENDER_JPEG: RenderEncode
RENDER_LABEL: RenderMode
RENDER_LIDAR: RenderCamera
RENDER_MATERIAL: RenderMode
RENDER_NORMAL: RenderMode
RENDER_ORTHOGRAPHIC: RenderCamera
RENDER_PATH: RenderMode
RENDER_PINHOLE: RenderCamera
RENDER_PNG: RenderEncode
RENDER_TENSOR: RenderEncode

class RenderBox(_message.Message):
    __slots__ = ["high", "low"]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    high: _common_pb2.Vec3
    low: _common_pb2.Vec3
    def __init__(self, low: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., high: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ...) -> None: ...

class RenderRegion(_message.Message):
    __slots__ = ["box", "colours"]
    BOX_FIELD_NUMBER: _ClassVar[int]
    COLOURS_FIELD_NUMBER: _ClassVar[int]
    box: RenderBox
    colours: bytes
    def __init__(self, box: _Optional[_Union[RenderBox, _Mapping]] = ..., colours: _Optional[bytes] = ...) -> None: ...

class RenderScene(_message.Message):
    __slots__ = ["at", "name"]
    AT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    at: _scene_pb2.SceneAt
    name: str
    def __init__(self, name: _Optional[str] = ..., at: _Optional[_Union[_scene_pb2.SceneAt, _Mapping]] = ...) -> None: ...

class RenderTexture(_message.Message):
    __slots__ = ["height", "material", "texel_voxels", "texels", "width"]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    MATERIAL_FIELD_NUMBER: _ClassVar[int]
    TEXELS_FIELD_NUMBER: _ClassVar[int]
    TEXEL_VOXELS_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    height: int
    material: int
    texel_voxels: int
    texels: bytes
    width: int
    def __init__(self, material: _Optional[int] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., texels: _Optional[bytes] = ..., texel_voxels: _Optional[int] = ...) -> None: ...

class RenderView(_message.Message):
    __slots__ = ["eye", "target", "up"]
    EYE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    eye: _common_pb2.Vec3
    target: _common_pb2.Vec3
    up: _common_pb2.Vec3
    def __init__(self, eye: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., target: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., up: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ...) -> None: ...

class SceneRenderRequest(_message.Message):
    __slots__ = ["ambient", "ao_radius_m", "ao_samples", "at", "bounces", "camera", "clip", "detail", "elevations_deg", "encode", "fov_y_deg", "height", "min_weight", "mode", "name", "no_shadows", "others", "quality", "regions", "samples", "seed", "sun", "sun_direction", "textures", "variation", "view", "view_height_m", "volumes", "width", "z_high_m", "z_low_m"]
    AMBIENT_FIELD_NUMBER: _ClassVar[int]
    AO_RADIUS_M_FIELD_NUMBER: _ClassVar[int]
    AO_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    BOUNCES_FIELD_NUMBER: _ClassVar[int]
    CAMERA_FIELD_NUMBER: _ClassVar[int]
    CLIP_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    ELEVATIONS_DEG_FIELD_NUMBER: _ClassVar[int]
    ENCODE_FIELD_NUMBER: _ClassVar[int]
    FOV_Y_DEG_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    MIN_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NO_SHADOWS_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    QUALITY_FIELD_NUMBER: _ClassVar[int]
    REGIONS_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SUN_DIRECTION_FIELD_NUMBER: _ClassVar[int]
    SUN_FIELD_NUMBER: _ClassVar[int]
    TEXTURES_FIELD_NUMBER: _ClassVar[int]
    VARIATION_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    VIEW_HEIGHT_M_FIELD_NUMBER: _ClassVar[int]
    VOLUMES_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    Z_HIGH_M_FIELD_NUMBER: _ClassVar[int]
    Z_LOW_M_FIELD_NUMBER: _ClassVar[int]
    ambient: float
    ao_radius_m: float
    ao_samples: int
    at: _scene_pb2.SceneAt
    bounces: int
    camera: RenderCamera
    clip: RenderBox
    detail: float
    elevations_deg: _common_pb2.Tensor
    encode: RenderEncode
    fov_y_deg: float
    height: int
    min_weight: float
    mode: RenderMode
    name: str
    no_shadows: bool
    others: _containers.RepeatedCompositeFieldContainer[RenderScene]
    quality: int
    regions: _containers.RepeatedCompositeFieldContainer[RenderRegion]
    samples: int
    seed: int
    sun: float
    sun_direction: _common_pb2.Vec3
    textures: _containers.RepeatedCompositeFieldContainer[RenderTexture]
    variation: float
    view: RenderView
    view_height_m: float
    volumes: _containers.RepeatedScalarFieldContainer[str]
    width: int
    z_high_m: float
    z_low_m: float
    def __init__(self, name: _Optional[str] = ..., at: _Optional[_Union[_scene_pb2.SceneAt, _Mapping]] = ..., camera: _Optional[_Union[RenderCamera, str]] = ..., view: _Optional[_Union[RenderView, _Mapping]] = ..., fov_y_deg: _Optional[float] = ..., view_height_m: _Optional[float] = ..., elevations_deg: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., mode: _Optional[_Union[RenderMode, str]] = ..., samples: _Optional[int] = ..., ao_samples: _Optional[int] = ..., ao_radius_m: _Optional[float] = ..., bounces: _Optional[int] = ..., seed: _Optional[int] = ..., no_shadows: bool = ..., sun_direction: _Optional[_Union[_common_pb2.Vec3, _Mapping]] = ..., sun: _Optional[float] = ..., ambient: _Optional[float] = ..., variation: _Optional[float] = ..., z_low_m: _Optional[float] = ..., z_high_m: _Optional[float] = ..., detail: _Optional[float] = ..., encode: _Optional[_Union[RenderEncode, str]] = ..., quality: _Optional[int] = ..., clip: _Optional[_Union[RenderBox, _Mapping]] = ..., textures: _Optional[_Iterable[_Union[RenderTexture, _Mapping]]] = ..., regions: _Optional[_Iterable[_Union[RenderRegion, _Mapping]]] = ..., others: _Optional[_Iterable[_Union[RenderScene, _Mapping]]] = ..., volumes: _Optional[_Iterable[str]] = ..., min_weight: _Optional[float] = ...) -> None: ...

class SceneRenderResponse(_message.Message):
    __slots__ = ["engine_ms", "generation", "height", "image", "n_rays", "normal_scale", "pixels", "version", "view", "width"]
    ENGINE_MS_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    NORMAL_SCALE_FIELD_NUMBER: _ClassVar[int]
    N_RAYS_FIELD_NUMBER: _ClassVar[int]
    PIXELS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    engine_ms: float
    generation: int
    height: int
    image: bytes
    n_rays: int
    normal_scale: int
    pixels: _common_pb2.Tensor
    version: int
    view: RenderView
    width: int
    def __init__(self, version: _Optional[int] = ..., generation: _Optional[int] = ..., engine_ms: _Optional[float] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., pixels: _Optional[_Union[_common_pb2.Tensor, _Mapping]] = ..., image: _Optional[bytes] = ..., view: _Optional[_Union[RenderView, _Mapping]] = ..., n_rays: _Optional[int] = ..., normal_scale: _Optional[int] = ...) -> None: ...

class RenderCamera(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class RenderMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []

class RenderEncode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
