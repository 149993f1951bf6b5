// SPDX-License-Identifier: Apache-2.0
/* What the tests of networks' files share: a directory of its own, configs, weights files. */
#ifndef VXD_TESTS_SUPPORT_SERVER_MODEL_FILES_H
#define VXD_TESTS_SUPPORT_SERVER_MODEL_FILES_H

#include "server/model/model.h"

/* A small network with most of what a config can say. */
extern const char model_base[];

/* A fresh directory below /tmp; false when there is none to be had. */
bool model_directory(char path[64]);
/* With all its files. */
void model_directory_remove(const char *path);

/* Writes DIRECTORY/FILE. */
bool model_put(const char *directory, const char *file, const void *bytes,
               size_t n_bytes);
/* The caller frees; NULL where it cannot be read. */
uint8_t *model_get(const char *path, size_t *n_bytes);

/* text with the first `from` replaced by `to`; the caller frees. NULL where it is not in
 * there. */
char *model_replace(const char *text, const char *from, const char *to);

/* A safetensors file of a header and n_data bytes 0, 1, 2, ...; the caller frees. */
uint8_t *model_safetensors(const char *header, size_t n_data, size_t *n_bytes);

#endif
