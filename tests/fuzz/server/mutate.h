// SPDX-License-Identifier: Apache-2.0
/* Mutations of serialized messages by their protobuf descriptors. Nothing here knows the
 * schema: what a new method brings is mutated as soon as its descriptor is reachable. */
#ifndef VXD_TESTS_FUZZ_SERVER_MUTATE_H
#define VXD_TESTS_FUZZ_SERVER_MUTATE_H

#include <protobuf-c/protobuf-c.h>

#include "proto/base/base.h"

/* libFuzzer's own mutations of bytes; returns the new size. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* SplitMix64: the same seed gives the same mutation. */
struct fuzz_random {
    uint64_t state;
};

uint64_t fuzz_random_next(struct fuzz_random *random);

/* Uniform in 0 .. n - 1; n > 0. */
size_t fuzz_random_below(struct fuzz_random *random, size_t n);

/* All messages of a tree, itself first; those past the room are left out. */
#define FUZZ_MAX_NODES 1024

struct fuzz_nodes {
    ProtobufCMessage *items[FUZZ_MAX_NODES];
    size_t n;
};

void fuzz_collect(ProtobufCMessage *root, struct fuzz_nodes *out);

/* One to a few mutations of the message in data[0 .. size), or of an empty one where these
 * bytes are none; returns the new size, at most max_size. */
size_t fuzz_mutate(const ProtobufCMessageDescriptor *descriptor, uint8_t *data,
                   size_t size, size_t max_size, unsigned seed);

/* Message a with parts of message b; returns the size written to out, at most max_size. */
size_t fuzz_cross(const ProtobufCMessageDescriptor *descriptor, const uint8_t *a,
                  size_t a_bytes, const uint8_t *b, size_t b_bytes, uint8_t *out,
                  size_t max_size, unsigned seed);

#endif
