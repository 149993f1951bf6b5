#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/proto_golden.txt: what Google's own protobuf says about our schema.

    pip install protobuf==4.21.12
    protoc -I proto --python_out=OUT proto/voxeld/v1/*.proto
    protoc -I tests/support/proto --python_out=OUT tests/support/proto/kinds.proto
    PYTHONPATH=OUT python3 tests/support/proto/proto_golden.py > tests/data/proto_golden.txt

One case a line, tab-separated:

    read   MESSAGE  JSON  HEX    the JSON means this message (HEX: its wire bytes)
    write  MESSAGE  JSON  HEX    the wire bytes are written as this JSON (compared as JSON)
    refuse MESSAGE  JSON         the official library refuses the JSON
    garbage MESSAGE HEX          the official library refuses the wire bytes

The script checks every line against the library before it prints it. What the library
takes and we refuse (or the other way round) on purpose is tested by hand in C.
"""

import random
import struct
import sys

import kinds_pb2
from google.protobuf import json_format, message
from voxeld.v1 import admin_pb2, common_pb2, rpc_pb2, voxelize_pb2

MODULES = (admin_pb2, common_pb2, rpc_pb2, voxelize_pb2, kinds_pb2)


def message_class(name: str) -> type[message.Message]:
    for module in MODULES:
        if hasattr(module, name):
            return getattr(module, name)
    raise KeyError(name)


def read(name: str, text: str) -> None:
    parsed = json_format.Parse(text, message_class(name)())
    wire = parsed.SerializeToString(deterministic=True)
    print("read", name, text, wire.hex(), sep="\t")


def write(name: str, wire: bytes) -> None:
    parsed = message_class(name)()
    parsed.ParseFromString(wire)
    text = json_format.MessageToJson(parsed, indent=None)
    print("write", name, text, wire.hex(), sep="\t")


def write_message(value: message.Message) -> None:
    write(type(value).DESCRIPTOR.name, value.SerializeToString(deterministic=True))


def refuse(name: str, text: str) -> None:
    try:
        json_format.Parse(text, message_class(name)())
    except json_format.ParseError:
        print("refuse", name, text, sep="\t")
        return
    sys.exit(f"the library accepts {name} {text}")


def garbage(name: str, wire: bytes) -> None:
    try:
        message_class(name)().ParseFromString(wire)
    except message.DecodeError:
        print("garbage", name, wire.hex(), sep="\t")
        return
    sys.exit(f"the library accepts {name} {wire.hex()}")


def read_integers() -> None:
    for text in ("0", "1", "-1", "2147483647", "-2147483648", '"7"', '"-7"', "1.0", "1e2"):
        read("VoxelizeResponse", f'{{"grid":[{text}]}}')
    for text in ("2147483648", "-2147483649", "1.5", '"x"', '""', "true", "{}", "[]",
                 '"1.5"', "1e10", '" 1"', '"1 "', "null"):
        refuse("VoxelizeResponse", f'{{"grid":[{text}]}}')
    for text in ("0", "4294967295", '"4294967295"', "4.294967295e9", "5e1"):
        read("Cloud", f'{{"pointStep":{text}}}')
    for text in ("-1", "4294967296", '"-1"', "0.5", "false", '"0x10"'):
        refuse("Cloud", f'{{"pointStep":{text}}}')
    for text in ("9223372036854775807", "-9223372036854775808", '"9223372036854775807"',
                 '"-9223372036854775808"', "9007199254740993", "1e15", '"0"'):
        read("Cloud", f'{{"stampNs":{text}}}')
    for text in ('"9223372036854775808"', '"-9223372036854775809"', "1e19", "0.1", '"a"'):
        refuse("Cloud", f'{{"stampNs":{text}}}')
    for text in ('"18446744073709551615"', "0", '"1"', "1e18", "9223372036854775807"):
        read("VoxelizeResponse", f'{{"nVoxels":{text}}}')
    for text in ('"18446744073709551616"', "-1", '"-5"', "1e20"):
        refuse("VoxelizeResponse", f'{{"nVoxels":{text}}}')
    for text in ('"18446744073709551615"', "12"):
        read("SelfTestResponse", f'{{"digest":{text}}}')


def read_floats() -> None:
    for text in ("0", "1", "-1", "0.1", "1.5e300", "5e-324", '"1.5"', '"-2"', '"1e3"',
                 '"NaN"', '"Infinity"', '"-Infinity"', "1.7976931348623157e308",
                 "123456789012345678", "0.30000000000000004"):
        read("Vec3", f'{{"y":{text}}}')
        read("Tensor", f'{{"values":[1,{text}]}}')
    read("Tensor", '{"values":[-0.0]}')
    for text in ('"abc"', '"1.5x"', "[]", "{}", '"0x1p3"', '""'):
        refuse("Vec3", f'{{"y":{text}}}')
    refuse("Tensor", '{"values":[null]}')
    refuse("Tensor", '{"values":1}')


def read_texts() -> None:
    for text in ('"map"', '"\\u00e4\\ud83d\\ude00"', '"ä 漢字 🙂"', '"a\\"b\\\\c\\/d\\n\\t"',
                 '""', '"\\u0001\\u007f"'):
        read("Cloud", f'{{"frameId":{text}}}')
    for text in ("1", "true", "[]", "{}"):
        refuse("Cloud", f'{{"frameId":{text}}}')
    for text in ('""', '"AA=="', '"AA"', '"AAA="', '"AAA"', '"AAAA"', '"+/+/"', '"-_-_"',
                 '"3q2+7w=="', '"3q2-7w"'):
        read("Cloud", f'{{"data":{text}}}')
    for text in ("1", "[]", "true", '"A"'):
        refuse("Cloud", f'{{"data":{text}}}')
    for text in ("true", "false"):
        read("VoxelizeRequest", f'{{"noFeatures":{text}}}')
    for text in ("1", "0", '"yes"', "[]"):
        refuse("VoxelizeRequest", f'{{"noFeatures":{text}}}')


def read_enums() -> None:
    for text in ('"FLOAT32"', "7", '"DTYPE_UNSPECIFIED"', "0", '"BFLOAT16"', "12"):
        read("Tensor", f'{{"dtype":{text}}}')
    for text in ('"float32"', '""', "[]", '"NOPE"'):
        refuse("Tensor", f'{{"dtype":{text}}}')
    read("VoxelizeRequest", '{"reduce":["REDUCE_MEAN",5],"outputs":["OUTPUT_COORDS"]}')
    refuse("VoxelizeRequest", '{"reduce":["REDUCE_MEAN",null]}')


def read_structure() -> None:
    for name in ("ServerInfoRequest", "VoxelizeRequest", "Request", "Tensor"):
        read(name, "{}")
    read("VoxelizeRequest", '{"clouds":[],"size":null,"rule":null,"features":null}')
    read("VoxelizeRequest", '{"size":{},"range":{"low":{},"high":{"x":1}}}')
    read("VoxelizeRequest", '{"max_points":5,"maxVoxels":6,"no_features":true}')
    read("Cloud", '{"T_map_sensor":{"translation":{"x":1}},"frame_id":"a"}')
    read("Cloud", '{"TMapSensor":{"rotation":{"w":1}},"stamp_ns":"3"}')
    read("VoxelizeRequest",
         '{"clouds":[{"fields":[{"name":"x","dtype":"FLOAT32"},{"name":"y","offset":4,'
         '"dtype":7,"scale":0.5}],"pointStep":8,"data":"AAAAAAAAgD8=","sweeps":'
         '[{"dtS":-0.05,"TCloudSweep":{}}]}],"size":{"x":0.1,"y":0.1,"z":0.2}}')
    read("Request", '{"header":{"requestId":"r1","timeoutMs":5},"voxelize":{}}')
    read("Request", '{"header":null,"serverInfo":{},"status":null}')
    read("Request", '{"self_test":{"durationMs":1}}')
    for text in ('{"status":{},"voxelize":{}}', '{"nope":1}', '{"header":{"nope":1}}', "",
                 "{", '{"header":{}', '{"header":{},}', "{'header':{}}", '{"header":}',
                 '{"header":{}} x', '{"header":{"requestId":"\\ud800x"',
                 '{"header":{"timeoutMs":01}}'):
        refuse("Request", text)
    for text in ('{"clouds":{}}', '{"clouds":[null]}', '{"clouds":[1]}', '{"size":1}',
                 '{"features":"x"}', '{"features":[1]}',
                 '{"maxPoints":1,"maxPoints":1}'):
        refuse("VoxelizeRequest", text)


def write_numbers(rng: random.Random) -> None:
    doubles = [0.1, 1.0, -2.5, 1e300, 5e-324, 1e15, 123456789.125, 2.0**53, 1 / 3,
               1.7976931348623157e308, float("inf"), float("-inf"), float("nan")]
    doubles += [struct.unpack("<d", rng.randbytes(8))[0] for _ in range(40)]
    doubles += [rng.uniform(-1000, 1000) for _ in range(40)]
    for value in doubles:
        write_message(common_pb2.Vec3(x=value))
    write_message(common_pb2.Tensor(values=doubles + [0.0, -0.0]))
    for value in (1, -1, 2**63 - 1, -(2**63)):
        write_message(common_pb2.Cloud(stamp_ns=value))
    for value in (1, 2**63, 2**64 - 1):
        write_message(voxelize_pb2.VoxelizeResponse(n_voxels=value))
        write_message(admin_pb2.SelfTestResponse(digest=value))
    for value in (1, 2**31, 2**32 - 1):
        write_message(common_pb2.Cloud(point_step=value))
    write_message(voxelize_pb2.VoxelizeResponse(grid=[0, 1, -1, 2**31 - 1, -(2**31)]))


def write_rest(rng: random.Random) -> None:
    for text in ("", "a", 'quote " back \\ slash /', "tab\tline\nreturn\r", "ä 漢字 🙂",
                 "\x01\x1f\x7f", "</script>"):
        write_message(common_pb2.Cloud(frame_id=text))
    for n in (0, 1, 2, 3, 4, 57, 1000):
        write_message(common_pb2.Cloud(data=rng.randbytes(n)))
    write_message(common_pb2.Tensor(dtype=common_pb2.FLOAT16, shape=[2, 3], data=b"12"))
    write_message(common_pb2.Tensor(shape=[0, -1]))
    write("Tensor", bytes((0x08, 99)))  # an enum number that we do not know
    request = rpc_pb2.Request()
    request.status.SetInParent()
    write_message(request)
    response = rpc_pb2.Response()
    response.header.code = common_pb2.RESOURCE_EXHAUSTED
    response.header.message = "full"
    response.header.queue_ms = 0.25
    write_message(response)
    answer = voxelize_pb2.VoxelizeResponse(n_voxels=2, features=["x", "i"], axes="xyz")
    answer.items.add(stamp_ns=5, frame_id="lidar", n_points=10, n_used=9)
    answer.items.add()
    answer.size.x = 0.1
    answer.origin.SetInParent()
    answer.rule = voxelize_pb2.MINKOWSKI
    write_message(answer)
    status = admin_pb2.StatusResponse(state="serving", uptime_s=12.5)
    status.methods.add(name="voxelize", n_ok=3, mean_ms=0.125)
    status.slow.add(code=common_pb2.ABORTED, total_ms=11)
    write_message(status)


def read_kinds() -> None:
    small = ("i32", "s32", "sf32")
    for name in small:
        for text in ("2147483647", "-2147483648", '"-1"', "1e3", "-2.0", "0"):
            read("Kinds", f'{{"{name}":{text}}}')
        for text in ("2147483648", "-2147483649", "1.25"):
            refuse("Kinds", f'{{"{name}":{text}}}')
    for name in ("i64", "s64", "sf64"):
        for text in ('"9223372036854775807"', '"-9223372036854775808"', "-5"):
            read("Kinds", f'{{"{name}":{text}}}')
    for name in ("u64", "f64"):
        for text in ('"18446744073709551615"', "5"):
            read("Kinds", f'{{"{name}":{text}}}')
        refuse("Kinds", f'{{"{name}":-1}}')
    for name in ("u32", "f32"):
        for text in ("4294967295", '"4294967295"', "3"):
            read("Kinds", f'{{"{name}":{text}}}')
        refuse("Kinds", f'{{"{name}":4294967296}}')
    for text in ("0.1", "1", "-1.5", "3.4028234663852886e38", "-3.4028234663852886e38",
                 "1e-45", "1e-60", '"NaN"', '"Infinity"', '"-Infinity"', '"0.25"', "16777217"):
        read("Kinds", f'{{"flt":{text}}}')
    for text in ("3.5e38", "-3.5e38", "1e300", '"x"'):
        refuse("Kinds", f'{{"flt":{text}}}')
    for text in ('"CALM"', '"SAD"', "-1", "1", "null"):
        read("Kinds", f'{{"mood":{text}}}')
    for field in ("many_i32", "manyS32", "manySf32", "manyI64", "manyS64", "manySf64"):
        read("Kinds", f'{{"{field}":[0,1,-1,"5",-6.0,1000000]}}')
    for field in ("manyU32", "manyF32", "manyU64", "manyF64", "manyFlt", "manyDbl"):
        read("Kinds", f'{{"{field}":[0,1,"5",6.0,1000000]}}')
    read("Kinds", '{"unpacked":[3,270,86942],"manyTruths":[true,false]}')
    read("Kinds", '{"manyMoods":["SAD",1,0],"manyTexts":["","a"],"manyData":["","AQ"]}')
    read("Kinds", '{"manyLeaves":[{},{"name":"x"}],"leaf":{"name":null}}')
    for field in ("a_b_c", "aBC", "X_upper_y", "XUpperY", "trailing_", "trailing",
                  "two__scores", "twoScores", "digit_1x", "digit1x"):
        read("Kinds", f'{{"{field}":7}}')
    for field in ("ABC", "a_b_C", "xUpperY", "Trailing", "two_scores"):
        refuse("Kinds", f'{{"{field}":7}}')
    for text in ('"pickI32":0', '"pickU64":"0"', '"pickFlt":0', '"pickTruth":false',
                 '"pickMood":"CALM"', '"pickText":""', '"pickData":""', '"pickLeaf":{}',
                 '"pickI32":null,"pickText":"a"', '"pick_leaf":{"name":"b"}'):
        read("Kinds", "{" + text + "}")
    refuse("Kinds", '{"pickI32":1,"pickText":"a"}')
    refuse("Kinds", '{"pickLeaf":{},"pickTruth":false}')


def write_kinds(rng: random.Random) -> None:
    floats = [struct.unpack("<f", rng.randbytes(4))[0] for _ in range(60)]
    floats += [0.1, 1e-45, 3.4028234663852886e38, 16777216.0, 1 / 3, float("inf")]
    write_message(kinds_pb2.Kinds(many_flt=floats))
    for value in floats[::8]:
        write_message(kinds_pb2.Kinds(flt=value))
    write_message(kinds_pb2.Kinds(
        i32=-1, s32=-2, sf32=-3, u32=4, f32=5, i64=-6, s64=-7, sf64=-8, u64=9, f64=10,
        dbl=2.5, truth=True, mood=kinds_pb2.SAD, text="t", data=b"d",
        leaf=kinds_pb2.Leaf(), a_b_c=1, X_upper_y=2, trailing_=3, two__scores=4,
        digit_1x=5))
    write_message(kinds_pb2.Kinds(
        many_i32=[1, -1], many_s32=[1, -1], many_sf32=[1, -1], many_u32=[1], many_f32=[2],
        many_i64=[1, -1], many_s64=[1, -1], many_sf64=[1, -1], many_u64=[3], many_f64=[4],
        many_truths=[True, False], many_moods=[0, 1, -1], many_texts=["", "x"],
        many_data=[b"", b"xyz"], many_leaves=[kinds_pb2.Leaf(), kinds_pb2.Leaf(name="n")],
        unpacked=[1, 2, 300]))
    for field in kinds_pb2.Kinds.DESCRIPTOR.oneofs_by_name["choice"].fields:
        chosen = kinds_pb2.Kinds()
        if field.message_type is not None:
            chosen.pick_leaf.SetInParent()
        else:
            setattr(chosen, field.name, getattr(chosen, field.name))
        write_message(chosen)
    write("Kinds", bytes.fromhex("a80103a80104"))  # many_i32 unpacked
    write("Kinds", bytes.fromhex("b2020403040506"))  # unpacked, packed


def garbage_wires() -> None:
    for wire in ("08", "0a05aa", "0b", "0c", "00", "ffffffffff7f", "0a80808080808080808001",
                 "0aff", "07", "0f", "3a02c328", "0a021205"):
        garbage("VoxelizeItem" if wire == "3a02c328" else "VoxelizeRequest",
             bytes.fromhex(wire if wire != "3a02c328" else "1202c328"))


def main() -> None:
    rng = random.Random(2)
    print("# Made by tests/support/proto/proto_golden.py with Google's protobuf; do not edit.")
    read_integers()
    read_floats()
    read_texts()
    read_enums()
    read_structure()
    write_numbers(rng)
    write_rest(rng)
    read_kinds()
    write_kinds(rng)
    garbage_wires()


if __name__ == "__main__":
    main()
