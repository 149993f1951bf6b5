# SPDX-License-Identifier: Apache-2.0
"""What a scene is asked, and what it answers: the parts of voxeld.Scene."""
