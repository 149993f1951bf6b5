# SPDX-License-Identifier: Apache-2.0
"""Refinement of volumes, and their meshes as files: the parts of voxeld.Volume."""
