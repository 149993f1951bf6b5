# SPDX-License-Identifier: Apache-2.0
voxeld_add_test(NAME test_client_files SOURCES unit/test_client_files.c
                LIBRARIES voxeld_files m)
# The shared library, as users have it: only its public symbols resolve.
voxeld_add_test(NAME test_client_calls
                SOURCES unit/test_client_calls.c unit/test_client_peer.c
                LIBRARIES voxeld_client voxeld_schema nng::nng Threads::Threads)
