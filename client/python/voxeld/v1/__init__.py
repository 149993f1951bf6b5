# SPDX-License-Identifier: Apache-2.0
"""The schema, as protoc makes it; see generate.py."""
