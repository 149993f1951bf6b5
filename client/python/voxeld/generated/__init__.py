# SPDX-License-Identifier: Apache-2.0
"""What repeats the schema: records and methods of nouns, made by proto/gen. Not to be edited."""
