# SPDX-License-Identifier: Apache-2.0
"""A ROS 2 node: PointCloud2 in, the centres of its voxels as PointCloud2 out.

Messages go to the daemon verbatim, with the newest first: at most one scan waits there, an
older one is dropped. Stamp and frame pass through, so that the voxels are in the frame of
the sensor, at the time of the scan.

  pip install ./client/python          # in an environment that sees rclpy
  python3 ros2_bridge.py --ros-args -r points:=/lidar_top -p size:=0.2

topics      points (sensor_msgs/PointCloud2, sensor QoS) -> voxels (the same)
parameters  url      "" as voxeld.connect chooses
            size     voxel edge in metres, 0.1
            range    x y z of the low and of the high corner, six numbers; unset: everything
            timeout  seconds, 0.5
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import voxeld

STREAM = "ros2-bridge"
FLOAT32, UINT32 = 7, 6  # of sensor_msgs/PointField
RECORD = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("count", "<u4")])


def voxelize_message(
    client: voxeld.Client, message: Any, size: float, range: Sequence[float] = ()
) -> voxeld.Voxels:
    """Asks for the voxels of a PointCloud2: coordinates and counts, nothing else is computed.

    Raises voxeld.Aborted when a newer message took its place.
    """
    cloud = voxeld.Cloud.from_pointcloud2(message)
    return client.voxelize(
        cloud, size, range or None, features=(), stream=STREAM, keep_last=1
    )


def records_of(voxels: voxeld.Voxels) -> np.ndarray:
    """Returns x, y, z of the centres and the count of each voxel."""
    records = np.empty(len(voxels), RECORD)
    centres = voxels.centres()
    for axis, name in enumerate("xyz"):
        records[name] = centres[:, axis]
    records["count"] = voxels.counts
    return records


def fill_message(message: Any, make_field: Any, header: Any, voxels: voxeld.Voxels) -> Any:
    """Makes an empty PointCloud2 the reply to one with this header; returns it.

    make_field  sensor_msgs.msg.PointField, or what takes the same keywords
    """
    records = records_of(voxels)
    message.header = header
    message.height, message.width = 1, len(records)
    message.fields = [
        make_field(
            name=name,
            offset=RECORD.fields[name][1],
            datatype=UINT32 if name == "count" else FLOAT32,
            count=1,
        )
        for name in RECORD.names
    ]
    message.is_bigendian = False
    message.point_step = RECORD.itemsize
    message.row_step = RECORD.itemsize * len(records)
    message.data = records.tobytes()
    message.is_dense = True
    return message


def main() -> None:
    import rclpy
    from rclpy.callback_groups import ReentrantCallbackGroup
    from rclpy.executors import ExternalShutdownException, MultiThreadedExecutor
    from rclpy.qos import qos_profile_sensor_data
    from sensor_msgs.msg import PointCloud2, PointField

    rclpy.init()
    node = rclpy.create_node("voxeld_bridge")
    url = node.declare_parameter("url", "").value
    size = node.declare_parameter("size", 0.1).value
    # Six NaN, because an empty list has no type in ROS.
    box = node.declare_parameter("range", [float("nan")] * 6).value
    timeout = node.declare_parameter("timeout", 0.5).value
    range_m = () if np.isnan(box).any() else tuple(box)
    publisher = node.create_publisher(PointCloud2, "voxels", qos_profile_sensor_data)

    # wait=0: robots start in any order.
    with voxeld.connect(url or None, client_id=STREAM, timeout=timeout, wait=0) as client:

        def on_points(message: PointCloud2) -> None:
            try:
                voxels = voxelize_message(client, message, size, range_m)
            except voxeld.Aborted:
                return
            except voxeld.Error as e:
                node.get_logger().warning(str(e), throttle_duration_sec=5.0)
                return
            publisher.publish(fill_message(PointCloud2(), PointField, message.header, voxels))

        # Three callbacks at once: one scan runs, one waits, one takes the waiting one's place.
        node.create_subscription(
            PointCloud2,
            "points",
            on_points,
            qos_profile_sensor_data,
            callback_group=ReentrantCallbackGroup(),
        )
        executor = MultiThreadedExecutor(num_threads=3)
        executor.add_node(node)
        try:
            executor.spin()
        except (KeyboardInterrupt, ExternalShutdownException):
            pass
        finally:
            executor.shutdown()
            node.destroy_node()
            rclpy.try_shutdown()


if __name__ == "__main__":
    main()
