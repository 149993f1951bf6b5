// SPDX-License-Identifier: Apache-2.0
/* Single values of a field, wherever they lie: what mutate.c puts together. All memory is
 * malloc's, as protobuf-c's own free expects. */
#ifndef VXD_TESTS_FUZZ_SERVER_MUTATE_VALUE_H
#define VXD_TESTS_FUZZ_SERVER_MUTATE_VALUE_H

#include "tests/fuzz/server/mutate.h"

/* Never NULL: a fuzzer without memory ends. */
void *fuzz_alloc(size_t n_bytes);

/* A deep copy of the message, by packing. */
ProtobufCMessage *fuzz_copy_message(const ProtobufCMessage *message);

/* Frees what a value owns; the value itself is garbage then. */
void fuzz_value_clear(const ProtobufCFieldDescriptor *field, void *value);

/* Fills *value, which owned nothing, with a copy. */
void fuzz_value_copy(const ProtobufCFieldDescriptor *field, void *value,
                     const void *from);

/* Fills *value, which owned nothing, with something new. Messages are empty. */
void fuzz_value_make(struct fuzz_random *random, const ProtobufCFieldDescriptor *field,
                     void *value);

/* Changes a value in place; messages stay as they are. */
void fuzz_value_change(struct fuzz_random *random, const ProtobufCFieldDescriptor *field,
                       void *value);

#endif
