# SPDX-License-Identifier: Apache-2.0
"""Refinement of volumes, their meshes as files, and watches: the parts of voxeld.Volume."""
